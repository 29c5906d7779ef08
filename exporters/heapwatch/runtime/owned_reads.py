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


class OwnedReads:
    """Runs one read at a time in the thread that calls `watch.step()`, and without one in the main thread.

    The main thread answers late or never while inside C code.
    """

    # Shared by all instances: the main thread may call it after the requesting watch has ended.
    _question = _Question()
    _asking = threading.Lock()

    def __init__(self, safe_point: SafePoint | None = None) -> None:
        self._safe_point = safe_point
        self._main_thread_seconds = 0.0

    @property
    def seconds(self) -> float:
        """CPU seconds that these reads took in the threads of the program."""
        stepping_seconds = self._safe_point.answering_seconds if self._safe_point is not None else 0.0
        return self._main_thread_seconds + stepping_seconds

    def ask(self, read: Callable[[], Any], seconds: float | None = None) -> Any:
        """Run a read of less than a millisecond; None if it failed, or was not run in time.

        The time is a quarter of a second by default.
        """
        timeout = _SECONDS if seconds is None else seconds
        if self._safe_point is not None:
            owner = self._safe_point.stepping_thread()
            if owner not in (None, threading.main_thread()):
                return self._safe_point.ask(read, timeout)
        return self._ask_main_thread(read, timeout)

    def _ask_main_thread(self, read: Callable[[], Any], timeout: float) -> Any:
        if threading.current_thread() is threading.main_thread():
            return read()
        if not _serves_pending_calls() or not self._asking.acquire(timeout=timeout):
            return None
        try:
            request = self._question.request = Request(read)
            is_queued = self._question.queued or _queue(self._question)
            result = request.wait(timeout if is_queued else 0)
            self._question.request = None
            self._main_thread_seconds += request.seconds
            return result
        finally:
            self._asking.release()

    def abandon(self) -> None:
        """Discard the parent's requests in a forked child."""
        self._question.request = None
        OwnedReads._asking = threading.Lock()


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
