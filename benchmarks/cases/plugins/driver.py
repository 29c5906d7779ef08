"""Runs a script round by round, in a test: its sleeps take no time, and its time stops between rounds.

The scripts of the cases loop forever and sleep in each iteration, some in several threads. A test needs a
unit of work that ends. Here that is a number of seconds of the script's own time, which passes only while
the test asks for it: the clock jumps to the thread that wants to wake next, and waits until that thread
sleeps again.
"""

from __future__ import annotations

import asyncio
import importlib.util
import selectors
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

START_SECONDS = 1.0  # a script that does not sleep after this waits for a thread of its own that does
BLOCKED_SECONDS = 0.01  # a thread that is not back after this waits for another one that sleeps
SETTLE_SECONDS = 0.02  # real time at the end of a round, for threads that only wait for the others
_really_sleep = time.sleep


class ScriptEnded(RuntimeError):
    """The script has no next round: it has ended, or it raised what this is raised from."""


class Clock:
    """A time that stands still until it is advanced."""

    def __init__(self) -> None:
        self.now = 0.0
        self._wakes: dict[int, float] = {}  # by thread
        self._changed = threading.Condition()

    def sleep(self, seconds: float) -> None:
        """Block the calling thread until the clock has advanced by this many seconds."""
        thread = threading.get_ident()
        with self._changed:
            self._wakes[thread] = self.now + max(0.0, seconds)
            self._changed.notify_all()
            self._changed.wait_for(lambda: thread not in self._wakes)

    def notify(self) -> None:
        """Let `advance` look again whether anybody is still running."""
        with self._changed:
            self._changed.notify_all()

    def start(self, thread: int, ended: Callable[[], bool]) -> None:
        """Wait until this thread sleeps, so that no other one runs ahead of it.

        Args:
            thread: its identifier.
            ended: whether nobody will sleep any more; then it returns at once.

        """
        with self._changed:
            self._changed.wait_for(lambda: self._wakes or ended())
            self._changed.wait_for(partial(self._is_back, thread, ended), START_SECONDS)

    def advance(self, seconds: float, ended: Callable[[], bool]) -> None:
        """Let sleeping threads run, in the order in which they wake, until this many seconds have passed.

        Args:
            seconds: of this clock.
            ended: whether nobody will sleep any more; then it returns at once.

        """
        until = self.now + seconds
        with self._changed:
            while not ended():
                woken = min(self._wakes, key=self._wakes.__getitem__)
                if self._wakes[woken] > until:
                    break
                self.now = max(self.now, self._wakes.pop(woken))
                self._changed.notify_all()
                # One that is alone may take any time; where others sleep, it may be waiting for them.
                self._changed.wait_for(lambda: self._wakes or ended())
                self._changed.wait_for(partial(self._is_back, woken, ended), BLOCKED_SECONDS)
            self.now = until

    def _is_back(self, thread: int, ended: Callable[[], bool]) -> bool:
        return thread in self._wakes or ended()


class Script:
    """A script that runs in a thread of its own, as the module of its name.

    Only sleeps that the script's own lines ask for are on the clock; libraries sleep as always.

    Args:
        path: the script.

    """

    def __init__(self, path: Path) -> None:
        self._file = str(path)
        self._name = path.stem
        self._clock = Clock()
        self._thread = threading.Thread(target=self._run, name="script", daemon=True)
        self._failure: BaseException | None = None
        self._ended = False

    def advance(self, seconds: float) -> None:
        """Run the script for this many seconds of its own time; the first call starts it.

        Raises:
            ScriptEnded: the script ended or raised.

        """
        if not self._thread.ident:
            self._thread.start()
            assert self._thread.ident is not None
            self._clock.start(self._thread.ident, self._has_ended)
        self._clock.advance(seconds, self._has_ended)
        if self._ended:
            raise ScriptEnded(f"{self._file} has ended") from self._failure
        _really_sleep(SETTLE_SECONDS)

    def _has_ended(self) -> bool:
        return self._ended

    def _run(self) -> None:
        time.sleep = self._sleep  # type: ignore[assignment]
        asyncio.run = self._run_loop
        try:
            _import(self._name, self._file)
        except BaseException as error:
            self._failure = error
        self._ended = True
        self._clock.notify()

    def _is_caller(self) -> bool:
        return sys._getframe(2).f_code.co_filename == self._file

    def _sleep(self, seconds: float) -> None:
        (self._clock.sleep if self._is_caller() else _really_sleep)(seconds)

    def _run_loop(self, main: Coroutine[Any, Any, Any], **options: Any) -> Any:
        if not self._is_caller():
            return _really_run(main, **options)
        loop = asyncio.SelectorEventLoop(_OnClock(self._clock))
        loop.time = lambda: self._clock.now  # type: ignore[method-assign]
        return loop.run_until_complete(main)


_really_run = asyncio.run


class _OnClock(selectors.DefaultSelector):
    """What an event loop waits with: a time-out is on the clock, unless something is ready."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(timeout and 0)
        if not ready and timeout:
            self._clock.sleep(timeout)
        return ready


def _import(name: str, file: str) -> None:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
