"""Counts failed reads, and logs each distinct failure once."""

from __future__ import annotations

import functools
import inspect
import logging
import os
import signal
from collections import Counter
from traceback import walk_tb
from types import CodeType

from heapwatch.measure.introspection.names import type_of
from heapwatch.measure.introspection.roots import is_user_file
from heapwatch.text.terminal import plain

log = logging.getLogger("heapwatch")

_REMEMBERED = 256


class Failures:
    """Failures by collector. Keeps no exceptions, since their tracebacks would hold live objects."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._logged: set[tuple[str, str, str]] = set()

    def record(self, collector: str, what: str, error: BaseException) -> None:
        """Count a failure to read `what` and log it, once for each kind of error."""
        self.counts[collector] += 1
        key = (collector, what, type(error).__name__)
        if self._is_new(key):
            self._log(
                key, f"{collector}: {what}: {raised(error)}; its series are absent until it can be read"
            )

    def record_left_out(self, collector: str) -> None:
        """Log once that names of a collector have no series of their own, because there are too many."""
        key = (collector, "", "left out")
        if self._is_new(key):
            self._log(key, f"{collector}: too many names; some are added up as 'other' or left out")

    def _is_new(self, key: tuple[str, str, str]) -> bool:
        return key not in self._logged and len(self._logged) < _REMEMBERED

    def _log(self, key: tuple[str, str, str], message: str) -> None:
        self._logged.add(key)
        log.warning("%s", message)
        if len(self._logged) == _REMEMBERED:
            log.warning("%d kinds of failure logged, others are only counted", _REMEMBERED)


def must_propagate(error: BaseException) -> bool:
    """Whether an exception that was caught while a source was read must reach the trainer.

    That is KeyboardInterrupt, and any exception that a signal handler raised while a source was read, such as
    the SystemExit of a SIGTERM handler. Any other exception comes from the source and must not end training,
    even `SystemExit` or `asyncio.CancelledError`.
    """
    if isinstance(error, KeyboardInterrupt):
        return True
    handlers = {_handler_code(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    return any(frame.f_code in handlers for frame, _ in walk_tb(error.__traceback__))


def _handler_code(handler: object) -> CodeType | None:
    """The code of a handler written in Python; None for any other."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if callable(handler) and not hasattr(handler, "__code__"):
        handler = inspect.getattr_static(handler, "__call__", None)
    return getattr(handler, "__code__", None)


def describe(error: BaseException) -> str:
    """One line for an error whose own `__str__` may fail."""
    try:
        text = " ".join(str(error).split())
    except BaseException as failure:
        if must_propagate(failure):
            raise
        text = "(no message)"
    return plain(f"{type(error).__name__}: {text}", 250)


def raised(error: BaseException) -> str:
    """One line for an error with its text and the line that raised it, for the log."""
    return f"{describe(error)}{_raise_location(error)}"


def redacted(error: BaseException) -> str:
    """The class of an error and the line that raised it, for what leaves the process.

    Its text may hold what the program works on.
    """
    return plain(f"{type_of(error)}{_raise_location(error)}", 250)


def _raise_location(error: BaseException) -> str:
    """Where an error was raised: the innermost line of the user's code, else the innermost of all."""
    lines = [(frame.f_code.co_filename, number) for frame, number in walk_tb(error.__traceback__)]
    if not lines:
        return ""
    file, number = ([line for line in lines if is_user_file(line[0])] or lines)[-1]
    return plain(f", raised at {os.path.basename(file)}:{number}")
