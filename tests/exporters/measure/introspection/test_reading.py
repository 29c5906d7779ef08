"""A step found once leads to its part or says that the part is gone; it runs no code of the program."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import pytest

from heapwatch.measure.introspection.attributes import Gone
from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.introspection.reading import _FOLLOW, Step, follow, parts
from tests.support import objects_with_code as own
from tests.support.objects_with_code import ARMED, CALLS

_KEYS: dict[str, Any] = {"item": 0, "value": 0, "element": 0, "closure": 0}


class Holder:
    kept: list[int] = [1, 2]  # noqa: RUF012 - a class attribute that is shared is what is tested


@pytest.fixture(autouse=True)
def no_code_of_the_program() -> Iterator[None]:
    CALLS.clear()
    yield
    ARMED[0] = False


@pytest.mark.parametrize("replaced", [5, [], own.OwnOrdered(), Holder])
def test_a_class_attribute_is_followed_and_gone_of_what_is_no_class_any_more(replaced: Any) -> None:
    assert follow(Holder, Step("class", "kept", ".kept")) is Holder.kept
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


_KEPT: list[int] = [1, 2]
_VIEWED = {"a": 1}
_PATTERN = re.compile("a")


@pytest.mark.parametrize(
    ("obj", "kept"),
    [(_KEPT.append, _KEPT), (MappingProxyType(_VIEWED), _VIEWED), (_PATTERN.match, _PATTERN)],
    ids=["a method of a list", "a read-only view", "a method of C code that knows its class"],
)
def test_what_belongs_to_one_object_leads_to_it_and_goes_with_it(obj: Any, kept: Any) -> None:
    ((step, part),) = parts(obj, layout_of(type(obj)), 3)
    assert part is kept
    assert follow(obj, step) is kept
    if step.label:
        assert step.label == ".__self__"
        with pytest.raises(Gone):
            follow(kept, step)


def test_a_dict_that_shrinks_while_it_is_read() -> None:
    values = dict.fromkeys(range(100), 0)
    found = parts(values, layout_of(dict), 8)
    next(found)
    values.clear()
    assert list(found) == []
