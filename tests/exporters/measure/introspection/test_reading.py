"""A step found once leads to its part or says that the part is gone; it runs no code of the program."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas
import pytest
import torch

from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.introspection.reading import _FOLLOW, Gone, Step, follow, length_of, parts
from tests.exporters.explain import objects_with_code as own
from tests.exporters.explain.objects_with_code import ARMED, CALLS

_KEYS: dict[str, Any] = {
    "item": 0,
    "value": 0,
    "element": 0,
    "closure": 0,
    "default": 0,
    "thread_local": (0, "a"),
}


class Holder:
    kept: list[int] = [1, 2]  # noqa: RUF012 - a class attribute that is shared is what is tested


@pytest.fixture(autouse=True)
def no_code_of_the_program() -> Iterator[None]:
    CALLS.clear()
    yield
    ARMED[0] = False


@pytest.mark.parametrize(
    ("obj", "length"),
    [([1, 2], 2), ("text", 4), (b"ab", 2), (np.zeros((3, 4)), 12), (torch.zeros(5), 5), (Holder(), None)],
)
def test_the_length_of_what_has_one(obj: object, length: int | None) -> None:
    assert length_of(obj, layout_of(type(obj))) == length


def test_a_table_whose_index_remembers_many_views_has_its_rows() -> None:
    table = pandas.DataFrame({"text": ["a"] * 100, "vector": [[1]] * 100})
    views = [table.tail(10) for _ in range(300)]
    assert length_of(table, layout_of(type(table))) == 100
    assert len(views) == 300


def test_a_class_attribute_is_followed() -> None:
    assert follow(Holder, Step("class", "kept", ".kept")) is Holder.kept


@pytest.mark.parametrize("replaced", [5, [], own.OwnOrdered(), Holder])
def test_a_class_attribute_of_what_is_no_class_any_more_is_gone(replaced: Any) -> None:
    with pytest.raises(Gone):
        follow(replaced, Step("class", "missing", ".missing"))


@pytest.mark.parametrize("how", sorted(_FOLLOW))
@pytest.mark.parametrize("kind", [own.Plain, own.Slotted, own.OwnList, own.OwnDict])
def test_a_step_on_an_object_of_another_type_runs_none_of_its_code(how: str, kind: type) -> None:
    obj = kind()
    ARMED[0] = True
    try:
        follow(obj, Step(how, _KEYS.get(how, "self"), ""))
    except Gone:
        pass
    finally:
        ARMED[0] = False
    assert CALLS == []


def test_a_method_of_a_list_leads_to_the_list() -> None:
    kept = [1, 2]
    ((step, part),) = parts(kept.append, layout_of(type(kept.append)), 3)
    assert step.label == ".__self__"
    assert part is kept
    assert follow(kept.append, step) is kept
    with pytest.raises(Gone):
        follow(kept, step)


def test_a_read_only_view_of_a_dict_leads_to_the_dict() -> None:
    kept = {"a": 1}
    view = MappingProxyType(kept)
    ((step, part),) = parts(view, layout_of(type(view)), 3)
    assert part is kept
    assert follow(view, step) is kept


def test_a_method_of_c_code_that_knows_its_class_leads_to_its_object() -> None:
    pattern = re.compile("a")
    ((_, part),) = parts(pattern.match, layout_of(type(pattern.match)), 3)
    assert part is pattern


def test_a_dict_that_shrinks_while_it_is_read() -> None:
    values = dict.fromkeys(range(100), 0)
    found = parts(values, layout_of(dict), 8)
    next(found)
    values.clear()
    assert list(found) == []
