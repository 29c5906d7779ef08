"""Reads objects that C code of other threads may change without the GIL, and inspects these threads.

A thread that is inside `backward()` or `resize_()` changes tensors without holding the lock, and a read from
another thread may then follow a pointer that was just freed. So such a read is one call into C, in which no
other thread can take the lock. It first compares the innermost function of every thread. Unless all
the others are in functions that only wait, or in a call of `time.sleep`, nothing is read.
"""

from __future__ import annotations

import dis
import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from itertools import chain, compress, filterfalse, repeat, tee
from operator import attrgetter, is_, itemgetter, or_
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar
from weakref import ref

from heapwatch.measure.introspection.frames import innermost_frames, thread_ids
from heapwatch.measure.introspection.torch_internals import in_an_operation

Reader = Callable[[Any], Any]
# Runs a read in the thread that may do it, and returns its result; None if that was not possible.
Ask = Callable[[Callable[[], Any]], Any]
Function = TypeVar("Function", bound=Callable[..., Any])

# Functions that wait for a lock, a socket, a pipe or a process, and call no other C code that takes long.
_WAITING = (
    ("threading", "Condition.wait"),
    ("threading", "Thread.join"),
    ("threading", "Thread._wait_for_tstate_lock"),
    ("threading", "_shutdown"),
    ("concurrent.futures.thread", "_worker"),
    ("selectors", "SelectSelector.select"),
    ("selectors", "SelectSelector._select"),
    ("selectors", "PollSelector.select"),
    ("selectors", "EpollSelector.select"),
    ("selectors", "KqueueSelector.select"),
    ("selectors", "_PollLikeSelector.select"),
    ("socket", "socket.accept"),
    ("socket", "SocketIO.readinto"),
    ("multiprocessing.connection", "Connection._recv"),
    ("multiprocessing.popen_fork", "Popen.poll"),
    ("subprocess", "Popen._try_wait"),
    ("ipykernel.heartbeat", "Heartbeat.run"),
    ("torch._inductor.compile_worker.subproc_pool", "_recv_msg"),
)
# Until Python 3.11 a call that allocates may start the collector, and so run code of the program.
_COLLECTS_IN_CALLS = sys.version_info < (3, 12)

_SLEEP = time.sleep  # as it was before the program may have replaced it
_CALLS = ("CALL", "PRECALL")  # Python 3.11 calls what it knows well from the instruction before

_place = attrgetter("f_code", "f_lasti")
_place_and_names = attrgetter("f_code", "f_lasti", "f_globals")
_is_none = partial(is_, None)
_unseen = list(_WAITING)
# Not their ids: `id` is audited, and a hook of the program would run inside the call.
_waiting: set[CodeType] = set()


def read_alone(objects: Sequence[Any], *columns: tuple[Reader, ...]) -> list[tuple[Any, ...]] | None:
    """One tuple an object with one value a column; None while another thread may be in C code.

    An error that a reader raises is raised here.

    Args:
        objects: what to read, or weak references to it: those that have died have no tuple.
        columns: functions written in C that run no code of the program, applied one after the other.

    """
    if not _may_read() or not collects_no_more(len(objects) * (1 + len(columns))):
        return None
    weak = objects and type(objects[0]) is ref
    alive = filterfalse(_is_none, map(ref.__call__, objects)) if weak else iter(objects)
    return call_alone(zip(*map(_column, tee(alive, len(columns)), columns)))  # noqa: B905 - equally long


def call_alone(calls: Iterator[Any]) -> list[Any] | None:
    """List what an iterator written in C yields, in one call; None while another thread may be in C code."""
    results = list(map(list, compress([calls], _others_wait())))
    return results[0] if results else None


def _others_wait() -> Iterator[bool]:
    """Yield whether all other threads only wait, evaluated inside the C code of the caller.

    The caller must be declared with `waits_in`, since its thread is checked as well.
    """
    calls = {
        (code, offset)
        for code, offset, names in list(map(_place_and_names, innermost_frames()))
        if code not in _waiting and in_waiting_call(code, offset, names)
    }
    places: list[tuple[CodeType, int]] = []
    fill_places: Iterator[Any] = compress(
        map(places.extend, [map(_place, innermost_frames())]), repeat(False)
    )
    in_functions = map(_waiting.__contains__, map(itemgetter(0), places))
    return chain(fill_places, map(all, [map(or_, in_functions, map(calls.__contains__, places))]))


def waits_in(function: Function) -> Function:
    """Declare, as a decorator, that a thread in this function itself changes nothing of the program."""
    _waiting.add(function.__code__)
    return function


def has_lock() -> bool:
    """Whether the interpreter has its global lock; a free-threaded build has not."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def _may_read() -> bool:
    if not has_lock() or in_an_operation():
        return False
    for entry in _unseen.copy():
        if entry[0] in sys.modules:
            _waiting.update(_code(*entry))
            with suppress(ValueError):  # another thread was first
                _unseen.remove(entry)
    return True


def collects_no_more(objects: int) -> bool:
    """Whether the collector will not start while this many objects are made.

    If it would, it examines the youngest objects now, a moment early.
    """
    if not _COLLECTS_IN_CALLS or not gc.isenabled():
        return True
    objects += 2 * len(thread_ids())
    threshold = gc.get_threshold()[0]
    if gc.get_count()[0] + objects >= threshold > objects:
        gc.collect(0)
    return gc.get_count()[0] + objects < threshold


def _column(objects: Iterator[Any], readers: tuple[Reader, ...]) -> Iterator[Any]:
    for reader in readers:
        objects = map(reader, objects)
    return objects


def _code(module: str, path: str) -> Iterator[CodeType]:
    """The code of a function of a module; nothing where this version has no such function."""
    obj: Any = sys.modules[module]
    for name in path.split("."):
        obj = getattr(obj, name, None)
    if type(obj) is FunctionType:
        yield obj.__code__


waits_in(call_alone)


def first_answer(read: Callable[[], Any], ask: Ask) -> Any:
    """Run a read in this thread; if it returns None, since other threads may be in C code, through `ask`."""
    result = read()
    return ask(read) if result is None else result


def in_waiting_call(code: CodeType, offset: int, namespace: dict[str, Any]) -> bool:
    """Whether the instruction at this offset of a function with these global names calls `time.sleep`.

    A thread that is inside C code is at the instruction that called it. So what it is in is certain where
    this instruction calls a function that can be told from the byte code alone: `time.sleep(...)` or
    `sleep(...)`, of global names. The places of instructions in the source, by which the name and the call
    are put together, exist since Python 3.11.
    """
    names = _called_at(code, offset)
    if not names or names[-1] != "sleep":
        return False
    target: Any = namespace.get(names[0])
    if len(names) == 2:
        target = vars(target).get(names[1]) if type(target) is ModuleType else None
    return target is _SLEEP


@lru_cache(maxsize=1000)
def _called_at(code: CodeType, offset: int) -> tuple[str, ...]:
    """The global name that an instruction calls, `(module, name)` or `(name,)`; empty for any other."""
    if sys.version_info < (3, 11):
        return ()
    instructions = list(dis.get_instructions(code))
    call = next(
        (
            instruction
            for instruction in instructions
            if instruction.offset == offset and instruction.opname.startswith(_CALLS)
        ),
        None,
    )
    if call is None or (begin := _begin(call)) is None:
        return ()
    same_place = [instruction for instruction in instructions if _begin(instruction) == begin]
    if sum(instruction.opname.startswith("CALL") for instruction in same_place) != 1:
        return ()  # what is called is itself the result of a call
    loads = [instruction for instruction in same_place if instruction.opname.startswith("LOAD_")]
    names = [str(instruction.argval) for instruction in loads]
    if not loads or not loads[0].opname.startswith(("LOAD_GLOBAL", "LOAD_NAME")) or len(names) > 2:
        return ()
    return tuple(names)


def _begin(instruction: Any) -> tuple[int, int] | None:
    place = instruction.positions
    if place is None or place.lineno is None or place.col_offset is None:
        return None
    return place.lineno, place.col_offset
