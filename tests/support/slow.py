"""Which tests are slow: those that start processes, and those that are marked so. `-m "not slow"` leaves them out.

A test starts processes if the test, one of its fixtures or a function of the tests that these use names
`subprocess`, `multiprocessing` or a fork. What the product starts by itself is not seen: such a test bears
the mark, as does one that takes a second.

A test without the mark fails if it starts a process, and where slow tests are left out also if it takes
longer than it may.
"""

from __future__ import annotations

import functools
import inspect
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import pytest

TESTS = str(Path(__file__).parents[1])
STARTERS = {"subprocess", "multiprocessing", "Popen", "fork"}
LEFT_OUT = "not slow"
LONGEST_SECONDS = 2.0

_started: list[str] = []


def pytest_configure() -> None:
    """Note what starts a process."""
    start = subprocess.Popen.__init__

    @functools.wraps(start)
    def noted(self: Any, args: Any, *more: Any, **options: Any) -> None:
        _started.append(str(args)[:200])
        start(self, args, *more, **options)

    subprocess.Popen.__init__ = noted  # type: ignore[method-assign]
    os.register_at_fork(before=lambda: _started.append("a fork"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what starts processes."""
    for item in items:
        if isinstance(item, pytest.Function) and starts_processes(*_functions(item)):
            item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a slow test that is not marked."""
    _started.clear()
    began = _seconds()
    result = yield
    seconds = _seconds() - began
    if item.get_closest_marker("slow") is None:
        if _started:
            pytest.fail(f"starts a process and is not marked slow: {_started[0]}", pytrace=False)
        if item.config.option.markexpr == LEFT_OUT and seconds > LONGEST_SECONDS:
            pytest.fail(f"takes {seconds:.1f} s and is not marked slow", pytrace=False)
    return result


def _seconds() -> float:
    """A clock that stands still while this thread waits for a processor, as it does on a busy machine."""
    try:
        with open("/proc/thread-self/schedstat") as file:
            waited = int(file.read().split()[1]) / 1e9
    except OSError:
        waited = 0.0
    return time.monotonic() - waited


def _functions(item: pytest.Function) -> Iterator[Callable[..., Any]]:
    yield item.function
    for fixtures in item._fixtureinfo.name2fixturedefs.values():
        for fixture in fixtures:
            yield fixture.func


@functools.cache
def starts_processes(*functions: Callable[..., Any]) -> bool:
    """Whether one of these, or a function or class of the tests that they use, names what starts processes."""
    ahead: list[Any] = [*functions]
    seen: set[int] = set()
    while ahead:
        one = ahead.pop()
        if isinstance(one, (staticmethod, classmethod, MethodType)):
            one = one.__func__
        if isinstance(one, ModuleType) and one.__name__ in STARTERS:
            return True
        if not isinstance(one, (FunctionType, type)) or id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, type):
            ahead += vars(one).values()
            continue
        one = inspect.unwrap(one)
        if not one.__code__.co_filename.startswith(TESTS):
            continue
        names = _names(one.__code__)
        if names & STARTERS:
            return True
        ahead += [one.__globals__[name] for name in names & one.__globals__.keys()]
    return False


def _names(code: CodeType) -> set[str]:
    inside = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return {*code.co_names, *chain.from_iterable(inside)}
