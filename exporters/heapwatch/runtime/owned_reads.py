"""Reads that only one thread of the program may make: the one that steps, else the main thread.

CPython keeps a list of pending calls, C functions with an argument, which its main thread makes between two
byte codes (`Py_AddPendingCall` in the Python/C API). The function used here is `PyObject_IsTrue`: it asks an
object of this module for its truth value. An error that it returns is raised in the program: so the exception
of a signal handler that happens to run meanwhile goes where it would have gone anyway.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any

from heapwatch.measure.introspection.exclusive_reads import callers, innermost
from heapwatch.runtime.safe_point import Request, SafePoint

# A single operation of torch rarely takes longer; while it lasts, no byte code is reached.
_SECONDS = 0.25


class OwnedReads:
    """Reads in the thread that calls `watch.step()`, and without one in the main thread."""

    def __init__(self, safe_point: SafePoint | None = None) -> None:
        self._safe_point = safe_point
        self._main_thread = MainThread()

    @property
    def seconds(self) -> float:
        """CPU seconds that these reads took in the threads of the program."""
        stepped = self._safe_point.answering_seconds if self._safe_point is not None else 0.0
        return self._main_thread.seconds + stepped

    def ask(self, read: Callable[[], Any]) -> Any:
        """The result of a read that takes less than a millisecond; None if it was not made, or failed."""
        owner = None if self._safe_point is None else self._safe_point.stepping_thread()
        if self._safe_point is None or owner in (None, threading.main_thread()):
            return self._main_thread.ask(read, _SECONDS)
        return self._safe_point.ask(read, _SECONDS)

    def abandon(self) -> None:
        """In a forked child: nothing that the parent asked is answered."""
        self._main_thread.abandon()


class _Question:
    """The object whose truth value the interpreter asks for in its main thread.

    It is never freed: the interpreter may come to it when it has dropped all modules.
    """

    def __init__(self) -> None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        self.queued = False
        self.request: Request | None = None

    def __bool__(self) -> bool:
        # Nothing is logged here, imported or waited for: the program may be inside any of that.
        self.queued = False
        request, self.request = self.request, None
        if request is not None:
            request.make()
        return False


class MainThread:
    """Asks the main thread for one read at a time. A main thread that is inside C code answers late or never.

    `seconds` is the CPU time that the answers took in the main thread.
    """

    # One for all: the main thread may come to it when the watch that asked is gone.
    _question = _Question()
    _asking = threading.Lock()

    def __init__(self) -> None:
        self.seconds = 0.0

    def ask(self, read: Callable[[], Any], seconds: float) -> Any:
        """The result of `read`; None if it failed, or the main thread did not come to it in this time."""
        if threading.current_thread() is threading.main_thread():
            return read()
        if not _can_be_asked() or not self._asking.acquire(timeout=seconds):
            return None
        try:
            request = self._question.request = Request(read)
            queued = self._question.queued or _queue(self._question)
            result = request.wait(seconds if queued else 0)
            self._question.request = None
            self.seconds += request.seconds
            return result
        finally:
            self._asking.release()

    def abandon(self) -> None:
        """In a forked child: another thread's question is not answered."""
        self._question.request = None
        MainThread._asking = threading.Lock()


def _queue(question: _Question) -> bool:
    """Whether the interpreter has taken the question; its list of pending calls is full otherwise."""
    api = ctypes.pythonapi
    function = ctypes.cast(api.PyObject_IsTrue, ctypes.c_void_p)
    question.queued = True  # the main thread may have come to it, and unset this, when the call returns
    if api.Py_AddPendingCall(function, ctypes.py_object(question)) != 0:
        question.queued = False
        return False
    return True


def _can_be_asked() -> bool:
    """Whether the main thread of this interpreter is alive, serves pending calls, and is not debugged."""
    if sys.implementation.name != "cpython" or sys.is_finalizing() or interpreter_number() != 0:
        return False
    frame = innermost(threading.main_thread().ident or 0)
    return frame is not None and all(one.f_trace is None for one in callers(frame))


def interpreter_number() -> int:
    """The number of the interpreter that this runs in; 0 is the main one."""
    api = ctypes.pythonapi
    api.PyInterpreterState_Get.restype = ctypes.c_void_p
    api.PyInterpreterState_GetID.argtypes = [ctypes.c_void_p]
    api.PyInterpreterState_GetID.restype = ctypes.c_int64
    return int(api.PyInterpreterState_GetID(api.PyInterpreterState_Get()))
