"""What functions hold that have ended, and which instructions are calls of `time.sleep`."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from time import sleep
from types import FrameType, ModuleType, SimpleNamespace, TracebackType
from typing import Any

import pytest

from heapwatch.measure.introspection.frames import held_by_ended, in_waiting_call

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


def test_the_callers_of_what_failed_are_not_examined_while_they_run() -> None:
    local = ["a local variable"]
    try:
        fails(local)
    except ValueError as error:
        running, ended = frames_of(error)
        assert running is sys._getframe()
        assert held_by_ended(running) == []
        assert any(part is local for part in held_by_ended(ended))


ENDED: list[bool] = []  # what the threads below run until
SHORT = range(200_000)  # some milliseconds
pretended = ModuleType("pretended")
pretended.sleep = partial(sum, SHORT)  # type: ignore[attr-defined]


def by_module() -> None:
    while not ENDED:
        time.sleep(0.05)


def by_name() -> None:
    while not ENDED:
        sleep(0.025 + 0.025)


def in_a_larger_expression() -> None:
    while not ENDED:
        str([1, (time.sleep(0.05), 2), 3])


def of_another_module() -> None:
    while not ENDED:
        pretended.sleep(1)


def of_a_local_name() -> None:
    time = SimpleNamespace(sleep=sum)
    while not ENDED:
        time.sleep(SHORT)


def of_a_result() -> None:
    while not ENDED:
        sum(SHORT).__class__(3)


def in_c() -> None:
    while not ENDED:
        sum(SHORT)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="instructions have no place in the source")
@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (by_module, True),
        (by_name, True),
        (in_a_larger_expression, True),
        (of_another_module, False),
        (of_a_local_name, False),
        (of_a_result, False),
        (in_c, False),
    ],
)
def test_a_call_of_sleep_is_known_and_nothing_else_is(run: Callable[[], None], expected: bool) -> None:
    ENDED.clear()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    sleep(0.1)
    found = []
    try:
        for _ in range(20):
            frame = sys._current_frames().get(thread.ident or 0)
            if frame is not None and frame.f_code is run.__code__:
                found.append(in_waiting_call(frame.f_code, frame.f_lasti, frame.f_globals))
            sleep(0.01)
    finally:
        ENDED.append(True)
        thread.join(30)
    assert found
    assert set(found) == {expected}
