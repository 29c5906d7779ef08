"""The functions that threads are in, and what one that has ended still holds.

Whoever has the frame of a function that ends meanwhile has its local variables. If these are a list of all
objects, as this library makes to count them, and a dict of all frames is one of the objects, they hold each
other, with all that the threads of the program had in hand, until the garbage collector comes. So no dict of
frames exists any more when the call into C that made it returns.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from itertools import chain, islice
from operator import methodcaller
from types import CodeType, FrameType, FunctionType
from typing import Any


def thread_ids() -> list[int]:
    """The threads that are in Python functions, as `threading.get_ident` names them."""
    return next(map(list, _frames_by_thread()))


def innermost(thread: int) -> FrameType | None:
    """The frame of the function that a thread is in; None if it is in none. The caller must not keep it."""
    found: FrameType | None = next(map(methodcaller("get", thread), _frames_by_thread()))
    return found


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
    if sys.version_info < (3, 11) and _is_running(frame):
        return []
    names = (frame.f_globals, frame.f_builtins)
    return [
        part
        for part in gc.get_referents(frame)
        if type(part) not in (FrameType, CodeType)
        and not any(part is namespace for namespace in names)
        and not (type(part) is FunctionType and part.__code__ is frame.f_code)
    ]


def _is_running(frame: FrameType) -> bool:
    for thread in thread_ids():
        current = innermost(thread)
        while current is not None:
            if current is frame:
                return True
            current = current.f_back
    return False
