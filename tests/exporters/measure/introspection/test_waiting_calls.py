"""Which instructions are calls of `time.sleep`."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from time import sleep
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from heapwatch.measure.introspection.waiting_calls import in_waiting_call

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="instructions have no place in the source")
ROUNDS = 5  # no thread outlives its test for long
pretended = ModuleType("pretended")
pretended.sleep = partial(sum, range(20_000_000))  # type: ignore[attr-defined]


def by_module() -> None:
    for _ in range(ROUNDS):
        time.sleep(0.5)


def by_name() -> None:
    for _ in range(ROUNDS):
        sleep(0.25 + 0.25)


def in_a_larger_expression() -> Any:
    return [1, (time.sleep(3), 2), 3]


def of_another_module() -> None:
    for _ in range(ROUNDS):
        pretended.sleep(1)


def of_a_local_name() -> None:
    time = SimpleNamespace(sleep=sum)
    for _ in range(ROUNDS):
        time.sleep(range(20_000_000))


def of_a_result() -> None:
    for _ in range(ROUNDS):
        sum(range(20_000_000)).__class__(3)


def in_c() -> None:
    for _ in range(ROUNDS):
        sum(range(20_000_000))


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
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    sleep(0.2)
    found = []
    for _ in range(20):
        frame = sys._current_frames().get(thread.ident or 0)
        if frame is not None and frame.f_code is run.__code__:
            found.append(in_waiting_call(frame.f_code, frame.f_lasti, frame.f_globals))
        sleep(0.01)
    assert found
    assert set(found) == {expected}
