from __future__ import annotations

import heapq
import linecache
from types import CodeType, FunctionType
from typing import Any

import pytest

from heapwatch.explain.sites import lines_of, uses_of


class Trainer:
    def __init__(self) -> None:
        self.history: list[Any] = []

    def append(self, item: Any) -> None:
        self.history.append({"item": item})

    def by_alias(self, item: Any) -> None:
        history = self.history
        history.append(item)

    def under_a_key(self, item: Any) -> None:
        self.history[item] = item

    def as_a_row(self, item: Any) -> None:
        self.history.loc[len(self.history)] = item  # type: ignore[attr-defined]

    def in_an_inner_list(self, item: Any) -> None:
        self.history["loss"].append(item)  # type: ignore[call-overload]

    def changed(self, item: Any) -> None:
        self.history["loss"] = self.history["loss"] + [item]  # type: ignore[call-overload]

    def joined(self, item: Any) -> None:
        self.history = [*self.history, item]

    def augmented(self, item: str) -> None:
        self.history += item

    def pushed(self, item: Any) -> None:
        heapq.heappush(self.history, item)

    def elsewhere(self, item: Any) -> None:
        history: list[Any] = []
        history.append(item)

    def unrolled(self, cell: Any) -> Any:
        state = self.history
        _, state = cell(state)
        return state


def code(name: str) -> CodeType:
    function = vars(Trainer)[name]
    assert isinstance(function, FunctionType)
    return function.__code__


@pytest.mark.parametrize(
    "name",
    [
        "append",
        "by_alias",
        "under_a_key",
        "as_a_row",
        "in_an_inner_list",
        "changed",
        "joined",
        "augmented",
        "pushed",
    ],
)
def test_where_a_container_grows(name):
    line = 2 if name == "by_alias" else 1
    (use,) = [use for use in uses_of("history", [code(name)]) if use.effect == "grows"]
    assert use.site.line == code(name).co_firstlineno + line
    assert use.site.file == __file__
    assert use.site.function.endswith(name)


def test_a_local_variable_of_the_same_name_is_something_else():
    (use,) = uses_of("history", [code("append"), code("elsewhere")], "attribute")
    assert use.site.function.endswith("append")
    (use,) = uses_of("history", [code("append"), code("elsewhere")], "local")
    assert use.site.function.endswith("elsewhere")


def test_a_graph_grows_where_a_name_is_bound_to_what_was_made_from_it():
    (site,) = lines_of("rebinds", "state", [code("unrolled"), code("append")], "local")
    assert site.line == code("unrolled").co_firstlineno + 2


def test_a_statement_that_is_nested_too_deeply_is_skipped():
    text = "def deep(x):\n    history.append(0)\n    history.append(" + "+".join(["x"] * 500) + ")\n"
    code = compile(text, "<deep>", "exec")
    linecache.cache["<deep>"] = (len(text), None, text.splitlines(keepends=True), "<deep>")
    (deep,) = (value for value in code.co_consts if isinstance(value, CodeType))
    assert [use.site.line for use in uses_of("history", [deep])] == [2]
    del linecache.cache["<deep>"]
