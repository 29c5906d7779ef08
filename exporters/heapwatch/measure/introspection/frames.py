"""Reads frames of CPython: those of all threads, their callers, and their local variables.

Python has no public way to read the variables of another function without side effects. So this module
depends on how CPython makes and keeps frames. It is written for 3.10 to 3.14:

- before 3.11 an ended function and a suspended generator refer to their variables in the same way;
- 3.11 makes the frame object of a caller when it is asked for, and may start the collector then;
- before 3.13 `f_locals` returns a snapshot that stays with the frame; 3.12 has `PyFrame_GetVar`.

`tests/exporters/measure/introspection/test_frames.py` fails where a version differs.

A frame keeps the local variables of its function alive after the function ends. A list of all objects in
such a variable may contain a dict of all frames. This cycle would keep all local variables of the program
alive until the next garbage collection. So each dict of frames is freed within the C call that created it.
"""

from __future__ import annotations

import ctypes
import gc
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, compress, islice, repeat, takewhile
from operator import attrgetter, itemgetter, methodcaller
from types import CodeType, FrameType, FunctionType
from typing import Any

OPTIMIZED = inspect.CO_OPTIMIZED  # the code of a function, whose locals are no namespace
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

# Only this version both makes the objects of frames on demand and collects where an object is made.
_MAKES_FRAMES = sys.version_info[:2] == (3, 11)
_MADE_BESIDE, _TRIES = 10, 3


def thread_ids() -> list[int]:
    """Identifiers, as of `threading.get_ident`, of the threads that run Python functions."""
    return next(map(list, _frames_by_thread()))


def innermost(thread: int) -> FrameType | None:
    """The frame of the function that a thread is in; None if it is in none. The caller must not keep it."""
    frame: FrameType | None = next(map(methodcaller("get", thread), _frames_by_thread()))
    return frame


def callers(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and those that called it, the innermost first."""
    while frame is not None:
        yield frame
        frame = caller_of(frame)


def caller_of(frame: FrameType) -> FrameType | None:
    """The frame that called one of another thread; None without one, or if it could not be read safely.

    Python 3.11 makes that object when it is asked for, which may start the collector. If that runs code of
    the program, the other thread goes on, and the frame that is being read may be gone: the interpreter
    crashes. So there it is one call into C, which first sees that the collector is not due.
    """
    threshold = gc.get_threshold()[0]
    if not _MAKES_FRAMES or not threshold or not gc.isenabled():
        return frame.f_back
    for _ in range(_TRIES):
        not_due = takewhile((threshold - _MADE_BESIDE).__gt__, map(itemgetter(0), iter(gc.get_count, None)))
        for _, caller in zip(not_due, map(attrgetter("f_back"), repeat(frame, 1)), strict=False):
            result: FrameType | None = caller
            return result
        gc.collect(0)
    return None


def innermost_frames() -> Iterator[FrameType]:
    """The frames of all threads, listed when the first is asked for; to be consumed by one call into C."""
    return chain.from_iterable(map(dict.values, _frames_by_thread()))


def _frames_by_thread() -> Iterator[dict[int, FrameType]]:
    return islice(iter(sys._current_frames, None), 1)


def held_by_ended(frame: FrameType) -> list[Any]:
    """The local variables of a function that has ended; nothing of one that runs.

    From Python 3.11 on the interpreter lists them for the collector only once the function has ended. Neither
    the globals nor the calling frame are among them. Before 3.11 a suspended generator's are listed, too.
    """
    if sys.version_info < (3, 11):
        running = (caller for thread in thread_ids() for caller in callers(innermost(thread)))
        if any(caller is frame for caller in running):
            return []
    names = (frame.f_globals, frame.f_builtins)
    return [
        part
        for part in gc.get_referents(frame)
        if type(part) is not FrameType
        and type(part) is not CodeType
        and not any(part is namespace for namespace in names)
        and not (type(part) is FunctionType and part.__code__ is frame.f_code)
    ]


def locals_of(frame: FrameType, called: CodeType | None) -> dict[str, Any]:
    """The local variables of a running function, in a separate dict.

    Before Python 3.13 the interpreter returns a snapshot that stays with the frame and would keep alive
    objects that the function releases. So it is emptied again, unless the program itself got it from
    `locals()`. No other thread can run between counting its references and emptying it. While a trace
    function has the frame, as in a debugger, the interpreter would take the variables from it afterwards.
    An exception that the program keeps may also hold the frame.

    Args:
        frame: that of the function.
        called: the code of the function that it is calling; None if it calls none.

    """
    least_references = (
        _FRAME_REFERENCES
        if _may_be_trace_function(called)
        else max(_FRAME_REFERENCES, sys.getrefcount(frame))
    )
    if _get_variable is not None and frame.f_code.co_flags & OPTIMIZED:
        return _read_variables(frame, _get_variable)
    snapshot = frame.f_locals
    variables = dict(snapshot)
    is_shared = frame.f_trace is not None or sys.getrefcount(frame) > least_references
    if sys.version_info < (3, 13) and not is_shared:
        holder = [snapshot]
        del snapshot
        # References: the frame's, the list's, and those of the call chain itself.
        releasable = compress(holder, map(_SNAPSHOT_REFERENCES.__ge__, map(sys.getrefcount, holder)))
        for _ in map(dict.clear, releasable):
            pass
    return variables


def _may_be_trace_function(code: CodeType | None) -> bool:
    """Whether this may be the code of a trace function: it takes a frame, an event and an argument."""
    if code is None or code.co_flags & _SUSPENDS:
        return False
    return code.co_argcount >= 3 or bool(code.co_flags & inspect.CO_VARARGS)


def _read_variables(frame: FrameType, get: Callable[[FrameType, str], Any]) -> dict[str, Any]:
    """The local variables of a function that have a value, without the snapshot."""
    code, variables = frame.f_code, {}
    for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
        with suppress(NameError):
            variables[name] = get(frame, name)
    return variables


def _reader_of_variables() -> Callable[[FrameType, str], Any] | None:
    """`PyFrame_GetVar` of the C API, which Python 3.12 has; later versions make no snapshot."""
    if sys.implementation.name != "cpython" or sys.version_info[:2] != (3, 12):
        return None
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object)
    read: Callable[[FrameType, str], Any] = prototype(("PyFrame_GetVar", ctypes.pythonapi))
    return read


_get_variable = _reader_of_variables()


def _count_snapshot_references() -> int:
    """References that `sys.getrefcount` counts of a frame's snapshot without another holder."""

    def probe() -> list[int]:
        holder = [sys._getframe().f_locals]
        return list(map(sys.getrefcount, holder))

    return probe()[0] + 1  # `compress` holds the element while it asks for its selector


def _count_frame_references() -> int:
    """References that `sys.getrefcount` counts in `locals_of` of a frame that nothing else has."""

    def read() -> int:
        frame: FrameType | None = sys._getframe(1)
        return count(frame)

    def count(frame: FrameType | None) -> int:
        return sys.getrefcount(frame)

    return read()


_SNAPSHOT_REFERENCES = _count_snapshot_references()
_FRAME_REFERENCES = _count_frame_references()
