"""The functions that threads are in, what one that has ended still holds, and which are in `time.sleep`.

Whoever has the frame of a function that ends meanwhile has its local variables. If these are a list of all
objects, as this library makes to count them, and a dict of all frames is one of the objects, they hold each
other, with all that the threads of the program had in hand, until the garbage collector comes. So no dict of
frames exists any more when the call into C that made it returns.
"""

from __future__ import annotations

import dis
import gc
import sys
import time
from collections.abc import Iterator
from itertools import chain, islice
from operator import methodcaller
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

_MOST_KNOWN = 1000
_HAVE_PLACES = sys.version_info >= (3, 11)
_SLEEP = time.sleep  # as it was before the program may have replaced it
_CALLS = ("CALL", "PRECALL")  # Python 3.11 calls what it knows well from the instruction before

# Names that instructions call. By the id of the code, which is kept so that no other takes its id.
_called_names: dict[tuple[int, int], tuple[CodeType, tuple[str, ...]]] = {}


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


def in_waiting_call(code: CodeType, at: int, namespace: dict[str, Any]) -> bool:
    """Whether the instruction at this offset of a function with these global names calls `time.sleep`.

    A thread that is inside C code is at the instruction that called it. So what it is in is certain where
    this instruction calls a function that can be told from the byte code alone: `time.sleep(...)` or
    `sleep(...)`, of global names. The places of instructions in the source, by which the name and the call
    are put together, exist since Python 3.11.
    """
    names = _called_at(code, at)
    if not names or names[-1] != "sleep":
        return False
    found: Any = namespace.get(names[0])
    if len(names) == 2:
        found = vars(found).get(names[1]) if type(found) is ModuleType else None
    return found is _SLEEP


def _called_at(code: CodeType, at: int) -> tuple[str, ...]:
    """The global name that an instruction calls, `(module, name)` or `(name,)`; empty for any other."""
    if not _HAVE_PLACES:
        return ()
    key = id(code), at
    if key not in _called_names:
        if len(_called_names) >= _MOST_KNOWN:
            _called_names.clear()
        _called_names[key] = code, _find_called(code, at)
    return _called_names[key][1]


def _find_called(code: CodeType, at: int) -> tuple[str, ...]:
    instructions = list(dis.get_instructions(code))
    call = next((one for one in instructions if one.offset == at and one.opname.startswith(_CALLS)), None)
    if call is None or (begin := _begin(call)) is None:
        return ()
    together = [one for one in instructions if _begin(one) == begin]
    if sum(one.opname.startswith("CALL") for one in together) != 1:
        return ()  # what is called is itself the result of a call
    loads = [one for one in together if one.opname.startswith("LOAD_")]
    names = [str(one.argval) for one in loads]
    if not loads or not loads[0].opname.startswith(("LOAD_GLOBAL", "LOAD_NAME")) or len(names) > 2:
        return ()
    return tuple(names)


def _begin(instruction: Any) -> tuple[int, int] | None:
    place = instruction.positions
    if place is None or place.lineno is None or place.col_offset is None:
        return None
    return place.lineno, place.col_offset
