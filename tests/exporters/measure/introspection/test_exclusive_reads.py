"""What another thread might be changing is not read; which calls only sleep."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import methodcaller
from types import FrameType, ModuleType
from typing import Any

import pytest

from heapwatch.measure.introspection import exclusive_reads
from heapwatch.measure.introspection.exclusive_reads import (
    in_waiting_call,
    read_alone,
    waits_in,
)
from heapwatch.measure.introspection.frames import callers, innermost
from heapwatch.measure.introspection.roots import OWN_THREADS, calling_line, running_code
from heapwatch.measure.objects.tracked import tracked_objects
from tests.support.waiting import wait_for

length = (list.__len__,)


@pytest.fixture(autouse=True)
def others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the threads are looked at; those of the test runner alone may do what they want."""
    waiting = set(exclusive_reads._waiting)
    monkeypatch.setattr(exclusive_reads, "_waiting", waiting)
    monkeypatch.setattr(exclusive_reads, "_unseen", list(exclusive_reads._WAITING))
    for ident, frame in sys._current_frames().items():
        if ident != threading.get_ident():
            waiting.add(frame.f_code)


@contextmanager
def beside(run: Callable[[threading.Event], Any]) -> Iterator[None]:
    ended = threading.Event()
    thread = threading.Thread(target=run, args=[ended], daemon=True)
    thread.start()
    wait_for(lambda: any(frame.f_code is run.__code__ for frame in callers(innermost(thread.ident))))
    try:
        yield
    finally:
        ended.set()
        thread.join(30)


def busy(ended: threading.Event) -> None:
    while not ended.is_set():
        pass


def busy_in_c(ended: threading.Event) -> None:
    while not ended.is_set():
        sum(range(100_000))


def test_each_living_object_has_a_row_with_a_value_for_each_column() -> None:
    class Held(list[int]):
        pass

    one, two = [1], [1, 2]
    assert read_alone([one, two], length, (id, str)) == [(1, str(id(one))), (2, str(id(two)))]
    assert read_alone([], length) == []
    kept, gone = Held([1]), Held()
    references = [weakref.ref(gone), weakref.ref(kept)]
    del gone
    assert read_alone(references, length) == [(1,)]
    with pytest.raises(TypeError):
        read_alone([[1], 2], length)


def test_a_thread_that_waits_or_is_declared_to_is_no_reason_to_read_nothing() -> None:
    done: list[bool] = []

    @waits_in
    def compute(ended: threading.Event) -> None:
        while not done:
            pass

    with beside(lambda ended: ended.wait(30)):
        assert wait_for(lambda: read_alone([[1]], length)) == [(1,)]
    with beside(compute):
        read = read_alone([[1]], length)
        done.append(True)
    assert read == [(1,)]


def sleeping(ended: threading.Event) -> None:
    # A call that is made often becomes another instruction.
    for seconds in (*[0] * 100, *[0.5] * 60):
        if not ended.is_set():
            time.sleep(seconds)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="instructions have no place in the source")
def test_a_thread_that_sleeps_is_no_reason_either() -> None:
    with beside(sleeping):
        assert wait_for(lambda: read_alone([[1]], length)) == [(1,)]


@pytest.mark.parametrize("run", [busy, busy_in_c])
def test_nothing_is_read_beside_a_thread_that_does_anything(run: Callable[[threading.Event], Any]) -> None:
    with beside(run):
        assert read_alone([[1]], length) is None


@pytest.mark.slow
def test_threads_that_look_at_the_same_time_leave_nothing_to_the_collector() -> None:
    """Else what a frame of the program referred to would live on, and be freed in another order."""
    ended = threading.Event()
    looks: list[Callable[[], Any]] = [
        lambda: read_alone([[1]], length),
        lambda: read_alone([[1]], length),
        tracked_objects,
        lambda: (running_code(), calling_line({id(length)})),
    ]

    def repeat(look: Callable[[], Any]) -> None:
        while not ended.is_set():
            look()

    before = sys.getswitchinterval()
    gc.collect()
    gc.disable()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=repeat, args=[look], name=f"{OWN_THREADS}look") for look in looks]
        for thread in threads:
            thread.start()
        ended.wait(1)
        ended.set()
        for thread in threads:
            thread.join()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = {obj.f_code.co_name for obj in gc.garbage if type(obj) is FrameType}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
        sys.setswitchinterval(before)
    assert left == set()


def test_nothing_is_read_while_torch_calls_python() -> None:
    torch = pytest.importorskip("torch")
    found: list[Any] = []

    class Noted(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            found.append(read_alone([[1]], length))
            return gradient

    Noted.apply(torch.ones(1, requires_grad=True)).sum().backward()
    assert found == [None]
    with torch.device("cpu"):  # a mode that sees what tensors are asked
        assert read_alone([[1]], length) is None


def test_nothing_is_read_if_the_collector_would_start_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exclusive_reads, "_COLLECTS_IN_CALLS", True)
    count, collected = [gc.get_threshold()[0]], []
    monkeypatch.setattr(gc, "get_count", lambda: (count[0], 0, 0))
    monkeypatch.setattr(gc, "collect", collected.append)
    assert read_alone([[1]], length) is None
    assert collected == [0]
    count[0] = 0
    assert read_alone([[1]], length) == [(1,)]
    assert collected == [0]
    assert read_alone([[1]] * gc.get_threshold()[0], length) is None


def test_no_other_thread_runs_between_the_look_and_the_last_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exclusive_reads, "_COLLECTS_IN_CALLS", False)  # it would be too much to read at once
    lock = threading.Lock()
    lock.acquire(timeout=0)
    ran: dict[Any, bool] = {}

    @waits_in
    def go_on(ended: threading.Event) -> None:
        lock.acquire(timeout=30)
        ran[lock] = True

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with beside(go_on):
            columns = [(methodcaller("release"),), *[(ran.get,)] * 100_000]
            read = read_alone([lock], *columns)
    finally:
        sys.setswitchinterval(interval)
    assert read == [(None,) * 100_001]
    assert ran[lock]


ENDED: list[bool] = []  # what the threads below run until
SHORT = range(200_000)  # some milliseconds
pretended = ModuleType("pretended")
pretended.sleep = partial(sum, SHORT)  # type: ignore[attr-defined]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="instructions have no place in the source")
@pytest.mark.parametrize(
    ("argument", "statement", "expected"),
    [
        ("", "time.sleep(0.05)", True),
        ("", "str([1, (time.sleep(0.05), 2), 3])", True),
        ("", "pretended.sleep(1)", False),
        ("", "sum(SHORT).__class__(3)", False),
        ("", "sum(SHORT)", False),
    ],
)
def test_a_call_of_sleep_is_known_and_nothing_else_is(argument: str, statement: str, expected: bool) -> None:
    names: dict[str, Any] = globals().copy()
    exec(f"def run({argument}):\n    while not ENDED:\n        {statement}", names)
    run = names["run"]
    ENDED.clear()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    found = []

    def looked() -> bool:
        """Until the call that sleeps was seen, or twenty of another."""
        frame = sys._current_frames().get(thread.ident or 0)
        if frame is not None and frame.f_code is run.__code__:
            found.append(in_waiting_call(frame.f_code, frame.f_lasti, frame.f_globals))
        return any(found) if expected else len(found) >= 20

    try:
        wait_for(looked)
    finally:
        ENDED.append(True)
        thread.join(30)
    assert any(found) is expected
