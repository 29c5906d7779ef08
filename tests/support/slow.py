"""Which tests are slow, so that `-m "not slow"` leaves them out: those that start processes, and those marked so.

A test starts processes if it, a fixture of its or a function of the tests that either uses names `subprocess`,
`multiprocessing` or a `fork`. What code of the product starts is not seen; such a test bears the mark itself,
as does one that takes a second. One without the mark fails if it starts a process, and, where slow tests are
left out, if it takes longer than it may.
"""

from __future__ import annotations

import functools
import inspect
import os
import subprocess
import time
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

LONGEST_SECONDS = 2.0
STARTERS = ("subprocess", "multiprocessing", "fork")
FAST_ONLY = "not slow"

_started: list[str] = []


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start processes."""
    for item in items:
        if starts_processes(item):
            item.add_marker("slow")


def pytest_configure() -> None:
    """Note which processes are started."""
    started = subprocess.Popen.__init__

    @functools.wraps(started)
    def noted(self: Any, args: Any, *more: Any, **options: Any) -> None:
        _started.append(str(args)[:200])
        started(self, args, *more, **options)

    subprocess.Popen.__init__ = noted  # type: ignore[method-assign]
    os.register_at_fork(before=functools.partial(_started.append, "a fork of this process"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test that is slow and not marked."""
    _started.clear()
    began = _seconds()
    result = yield
    seconds = _seconds() - began
    if item.get_closest_marker("slow") is None:
        if _started:
            pytest.fail(f"it starts a process and is not marked slow: {_started[0]}", pytrace=False)
        if item.config.option.markexpr == FAST_ONLY and seconds > LONGEST_SECONDS:
            pytest.fail(f"it takes {seconds:.1f} s and is not marked slow", pytrace=False)
    return result


def _seconds() -> float:
    """A clock that stands still while this thread waits for a processor, as on a busy machine."""
    try:
        with open("/proc/thread-self/schedstat") as file:
            waited = int(file.read().split()[1]) / 1e9
    except OSError:
        waited = 0.0
    return time.monotonic() - waited


def starts_processes(item: pytest.Item) -> bool:
    """Whether a test names what starts processes, by itself or in a function of the tests that it uses."""
    known = getattr(item, "_fixtureinfo", None)
    fixtures = known.name2fixturedefs.values() if known else ()
    ahead: list[Any] = [getattr(item, "obj", None)]
    ahead += [one.func for several in fixtures for one in several]
    ahead += getattr(item, "callspec", None) and item.callspec.params.values() or ()
    seen: set[int] = set()
    while ahead:
        thing = _function(ahead.pop())
        if id(thing) in seen or not _is_of_the_tests(thing):
            continue
        seen.add(id(thing))
        if isinstance(thing, type):
            ahead += vars(thing).values()
            continue
        names = _names(thing.__code__)
        if not names.isdisjoint(STARTERS):
            return True
        ahead += [thing.__globals__[name] for name in names & thing.__globals__.keys()]
        ahead += [cell.cell_contents for cell in thing.__closure__ or () if cell != CellType()]
    return False
