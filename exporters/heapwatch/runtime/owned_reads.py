"""Runs reads in the one thread that may make them: the thread that steps, else the main thread.

CPython's main thread runs queued C functions between two byte codes (`Py_AddPendingCall` in the Python/C
API). This module queues `PyObject_IsTrue` with an object whose `__bool__` makes the read. CPython raises an
error of that call in the program. So the exception of a signal handler that runs meanwhile still reaches the
program.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any

from heapwatch.measure.introspection.frames import callers, innermost
from heapwatch.runtime.safe_point import Request, SafePoint

# A single operation of torch rarely takes longer; the main thread runs no byte code during it.
_SECONDS = 0.25


class OwnedReads:
    """Reads in the thread that calls `watch.step()`, and without one in the main thread."""

    def __init__(self, safe_point: SafePoint | None = None) -> None:
        self._safe_point = safe_point
        self._main_thread = MainThread()

    @property
    def seconds(self) -> float:
        """CPU seconds that these reads took in the threads of the program."""
        stepping_seconds = self._safe_point.answering_seconds if self._safe_point is not None else 0.0
        return self._main_thread.seconds + stepping_seconds

    def ask(self, read: Callable[[], Any]) -> Any:
        """Run a read of less than a millisecond; None if it was not run in time, or failed."""
        owner = None if self._safe_point is None else self._safe_point.stepping_thread()
        if self._safe_point is None or owner in (None, threading.main_thread()):
            return self._main_thread.ask(read, _SECONDS)
        return self._safe_point.ask(read, _SECONDS)

    def abandon(self) -> None:
        """Discard the parent's requests in a forked child."""
        self._main_thread.abandon()


class _Question:
    """The object on which the main thread calls `bool()`.

    It is never freed: the interpreter may call it after it has cleared all modules.
    """

    def __init__(self) -> None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        self.queued = False
        self.request: Request | None = None

    def __bool__(self) -> bool:
        # No logging, import or waiting here: the interrupted program may be inside any of these.
        self.queued = False
        request, self.request = self.request, None
        if request is not None:
            request.make()
        return False


class MainThread:
    """Runs one read at a time in the main thread, which answers late or never while inside C code.

    `seconds` is the CPU time of the reads in the main thread.
    """

    # Shared by all instances: the main thread may call it after the requesting watch has ended.
    _question = _Question()
    _asking = threading.Lock()

    def __init__(self) -> None:
        self.seconds = 0.0

    def ask(self, read: Callable[[], Any], seconds: float) -> Any:
        """The result of `read`; None if it failed, or the main thread did not run it within `seconds`."""
        if threading.current_thread() is threading.main_thread():
            return read()
        if not _serves_pending_calls() or not self._asking.acquire(timeout=seconds):
            return None
        try:
            request = self._question.request = Request(read)
            is_queued = self._question.queued or _queue(self._question)
            result = request.wait(seconds if is_queued else 0)
            self._question.request = None
            self.seconds += request.seconds
            return result
        finally:
            self._asking.release()

    def abandon(self) -> None:
        """Discard another thread's request in a forked child."""
        self._question.request = None
        MainThread._asking = threading.Lock()


def _queue(question: _Question) -> bool:
    """Queue a pending call; returns False if the interpreter's queue is full."""
    api = ctypes.pythonapi
    function = ctypes.cast(api.PyObject_IsTrue, ctypes.c_void_p)
    question.queued = True  # before the call: the main thread may reset it before the call returns
    if api.Py_AddPendingCall(function, ctypes.py_object(question)) != 0:
        question.queued = False
        return False
    return True


def _serves_pending_calls() -> bool:
    """Whether the main thread of this interpreter is alive, serves pending calls, and is not debugged."""
    if sys.implementation.name != "cpython" or sys.is_finalizing() or interpreter_number() != 0:
        return False
    frame = innermost(threading.main_thread().ident or 0)
    return frame is not None and all(caller.f_trace is None for caller in callers(frame))


def interpreter_number() -> int:
    """The number of the current interpreter; 0 is the main one."""
    api = ctypes.pythonapi
    api.PyInterpreterState_Get.restype = ctypes.c_void_p
    api.PyInterpreterState_GetID.argtypes = [ctypes.c_void_p]
    api.PyInterpreterState_GetID.restype = ctypes.c_int64
    return int(api.PyInterpreterState_GetID(api.PyInterpreterState_Get()))
