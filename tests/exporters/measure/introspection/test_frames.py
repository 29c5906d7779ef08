from __future__ import annotations

import sys
from types import FrameType, TracebackType
from typing import Any

from heapwatch.measure.introspection.frames import held_by_ended

kept_by_the_module = ["a global"]


def fails(held: Any) -> None:
    local = [held]
    raise ValueError(f"with {len(local)} local variables")


def frames_of(error: BaseException) -> list[FrameType]:
    found = []
    at: TracebackType | None = error.__traceback__
    while at is not None:
        found.append(at.tb_frame)
        at = at.tb_next
    return found


def error_of(held: Any) -> BaseException:
    try:
        fails(held)
    except ValueError as error:
        return error
    raise AssertionError("it did not fail")


def test_a_function_that_has_ended_holds_its_local_variables_and_nothing_else() -> None:
    held = object()
    *_, frame = frames_of(error_of(held))
    parts = held_by_ended(frame)
    assert any(part is held for part in parts)
    assert [held] in parts
    for namespace in (globals(), frame.f_builtins, fails, frame.f_code, frame.f_back):
        assert not any(part is namespace for part in parts)


def test_a_function_that_runs_holds_nothing_of_its_own() -> None:
    local = ["a local variable"]
    assert local
    assert held_by_ended(sys._getframe()) == []


def test_the_callers_of_what_failed_are_not_looked_into_while_they_run() -> None:
    local = ["a local variable"]
    try:
        fails(local)
    except ValueError as error:
        running, ended = frames_of(error)
        assert held_by_ended(running) == []
        assert any(part is local for part in held_by_ended(ended))
