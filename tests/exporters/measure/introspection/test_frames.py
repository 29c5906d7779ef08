"""Frames of CPython: fails in one line where an interpreter keeps them in another way."""

from __future__ import annotations

import sys
import traceback
from types import FrameType
from typing import Any

from heapwatch.measure.introspection.frames import caller_of, held_by_ended, locals_of

VERSION = sys.version.partition(" ")[0]


def fails(held: Any) -> None:
    local = [held]
    raise ValueError(f"with {len(local)} local variables")


def frames_of(error: BaseException) -> list[FrameType]:
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)]


class Incomparable(type):
    def __eq__(cls, other: object) -> bool:
        raise AssertionError("code of the program runs")

    __hash__ = None  # type: ignore[assignment]


def test_a_function_that_has_ended_holds_its_local_variables() -> None:
    held = Incomparable("Held", (), {})()
    try:
        fails(held)
    except ValueError as error:
        running, ended = frames_of(error)
    assert running is sys._getframe()
    assert held_by_ended(running) == []
    parts = held_by_ended(ended)
    assert any(part is held for part in parts)
    assert any(type(part) is list and part[0] is held for part in parts)
    for other in (globals(), ended.f_builtins, fails, ended.f_code, running):
        assert not any(part is other for part in parts)


def test_the_caller_and_the_local_variables_of_a_frame_are_read() -> None:
    variable = object()
    frame = sys._getframe()
    assert caller_of(frame) is frame.f_back, f"CPython {VERSION}: the calling frame is not found"
    found = locals_of(frame, None)["variable"]
    assert found is variable, f"CPython {VERSION}: local variables are not read"


def test_reading_local_variables_leaves_no_reference_to_them() -> None:
    def reads() -> int:
        variable = object()
        before = sys.getrefcount(variable)
        locals_of(sys._getframe(), None)
        return sys.getrefcount(variable) - before

    assert reads() == 0, f"CPython {VERSION}: the snapshot of local variables is not emptied"
