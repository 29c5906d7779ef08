"""Lists the objects that the garbage collector tracks, without tuples and weak references, and the largest.

The collector already tracks a tuple that C code is still filling, as in `tuple(generator)`. If anybody else
refers to it by then, the program's own code fails with a SystemError; whoever reads its items crashes the
process (CPython issue 39117, bpo-15108). So tuples are sorted out by chained C functions: between two of them
no other thread runs, and the lists that `gc` returns never reach Python code. Meanwhile the collector is off,
as it may run Python code: finalizers and `gc.callbacks`.

The callback of a weak reference runs for as long as somebody has the reference. A program that drops it to
be rid of the callback (`torch.compiler.reset` does) would see it called if it were listed here.

A result that existed when the objects were listed would be listed itself, and hold itself for ever while the
collector is off. So results are made after that, inside the chain, and taken out of it.
"""

from __future__ import annotations

import gc
import io
import sys
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial
from heapq import nlargest
from itertools import chain, compress, repeat, starmap
from operator import is_, is_not, lt
from typing import Any, NamedTuple
from weakref import ref

from heapwatch.measure.introspection.containers import array_bytes
from heapwatch.measure.introspection.layout import Layout, classes, identity, layout_of, own_bytes
from heapwatch.measure.introspection.names import type_of
from heapwatch.measure.sizing.tensor_storage import memory_key

_CHUNK = 4096  # objects whose referents are listed at a time
_MOST_OWN = 100  # more objects than a chain consists of
_DEEPEST = 5000
_FRAMES_APART = sys.version_info >= (3, 11)  # before, deep recursion needs the stack of C
_is_tuple = partial(is_, tuple)
_is_no_tuple = partial(is_not, tuple)
_is_reference = ref.__subclasscheck__  # of a type, without code of its metaclass

_CONTAINERS = ("list", "tuple", "dict", "set")
_LARGE = (*_CONTAINERS, "array", "tensor", "text", "raw")  # kinds of objects that may be large themselves
_UNTRACKED = (tuple, dict, str, bytes, bytearray, array, io.BytesIO, io.StringIO)  # what may be untracked


def tracked_types() -> list[type]:
    """The type of each tracked object, tuples included."""
    lists: list[list[Any]] = []
    return _run_selection(lists, map(gc.get_objects, (None,)), map(type, chain.from_iterable(lists)))


def type_keys(wanted_keys: Set[int], key: Callable[[type], int]) -> list[int]:
    """The key of the type of each tracked object, tuples included, whose type has one of these keys.

    Args:
        wanted_keys: keys of types.
        key: `id` or, as that calls audit hooks, `identity`.

    """
    lists: list[list[Any]] = []
    keys = map(key, map(type, chain.from_iterable(lists)))
    return _run_selection(lists, map(gc.get_objects, (None,)), filter(wanted_keys.__contains__, keys))


def tracked_objects(types: Set[int] | None = None, generation: int | None = None) -> list[Any]:
    """Tracked objects, of each generation the oldest first.

    Args:
        types: only objects whose type is exactly one of these, given by their `identity`: `id` calls audit
            hooks.
        generation: only objects of this generation of the collector.

    """
    lists: list[list[Any]] = []
    selection = _without_tuples(lists) if types is None else _of_types(lists, types - {identity(tuple)})
    objects = _run_selection(lists, map(gc.get_objects, (generation,)), selection)
    for index in range(max(0, len(objects) - _MOST_OWN), len(objects)):
        if objects[index] is lists:  # it and what follows was made here
            del objects[index:]
            break
    return objects


def with_subclasses(cls: type) -> Iterator[type]:
    """A class and its subclasses at any depth; one that is reached in two ways comes twice."""
    yield cls
    subclasses: list[type] = type.__subclasses__(cls)
    for subclass in subclasses:
        yield from with_subclasses(subclass)


def untracked_objects(tracked: Sequence[Any], types: Set[int]) -> Iterator[Any]:
    """Objects to which tracked ones refer, also inside tuples and untracked dicts, once for each reference.

    Tuples are read here because another object refers to them: these are complete.

    Args:
        tracked: the result of `tracked_objects`.
        types: only objects whose type is one of these, given by their `identity`.

    """
    relevant = types | {identity(tuple), identity(dict)}
    visited: set[int] = set()
    for start in range(0, len(tracked), _CHUNK):
        waiting = gc.get_referents(*tracked[start : start + _CHUNK])
        while waiting:
            # In C until few are left: there are several references to an object.
            kinds = map(identity, map(type, waiting))
            relevant_objects = list(compress(waiting, map(relevant.__contains__, kinds)))
            yield from (obj for obj in relevant_objects if identity(type(obj)) in types)
            # The collector does not track a dict while all its items are untracked.
            containers = {
                identity(obj): obj
                for obj in relevant_objects
                if type(obj) is tuple or (type(obj) is dict and not gc.is_tracked(obj))
            }
            unvisited = [obj for key, obj in containers.items() if key not in visited]
            visited.update(containers)
            waiting = gc.get_referents(*unvisited)


def referrers(obj: Any) -> list[Any]:
    """The objects that refer to `obj`, without tuples and weak references."""
    lists: list[list[Any]] = []
    return _run_selection(lists, starmap(gc.get_referrers, ((obj,),)), _without_tuples(lists))


def referrers_of_tuples(obj: Any) -> list[Any]:
    """The objects that refer to the tuples that hold `obj`, without tuples and weak references.

    Empty under an audit hook, which would run while the tuples are referred to.
    """
    if may_have_audit_hooks():
        return []
    lists: list[list[Any]] = []
    direct: list[list[Any]] = []
    tuples = chain(
        _each(map(direct.append, starmap(gc.get_referrers, ((obj,),)))), _of_type(direct, _is_tuple)
    )
    objects = _run_selection(lists, starmap(gc.get_referrers, (tuples,)), _without_tuples(lists), direct)
    return [one for one in objects if one is not direct[0]]


def _run_selection(
    lists: list[list[Any]],
    listing: Iterator[list[Any]],
    selection: Iterator[Any],
    others: Iterable[list[Any]] = (),
) -> list[Any]:
    """Run `listing` into `lists` and return the `selection` from them; clears `lists` and `others`."""
    results: list[list[Any]] = []
    _run(
        _each(map(lists.append, listing)),
        _each(map(results.append, map(list, (selection,)))),
        _each(map(list.clear, chain(lists, others))),
    )
    return results.pop()


def _of_type(lists: list[list[Any]], matches: Callable[[type], bool]) -> Iterator[Any]:
    return compress(chain.from_iterable(lists), map(matches, map(type, chain.from_iterable(lists))))


def _without_tuples(lists: list[list[Any]]) -> Iterator[Any]:
    types, same = (map(type, chain.from_iterable(lists)) for _ in range(2))
    return compress(chain.from_iterable(lists), map(lt, map(_is_reference, types), map(_is_no_tuple, same)))


def _of_types(lists: list[list[Any]], types: Set[int]) -> Iterator[Any]:
    # A type's own hash may be code of the program.
    keys = map(identity, map(type, chain.from_iterable(lists)))
    return compress(chain.from_iterable(lists), map(types.__contains__, keys))


def _each(calls: Iterator[Any]) -> Iterator[Any]:
    """Consumes the iterator when iterated over, and yields nothing."""
    return compress(calls, repeat(False))


def _run(*steps: Iterator[Any]) -> None:
    was_enabled: list[bool] = []
    calls = (
        _each(map(was_enabled.append, starmap(gc.isenabled, ((),)))),
        _each(starmap(gc.disable, ((),))),
        *steps,
        _each(starmap(gc.enable, compress(((),), was_enabled))),
    )
    try:
        deque(chain.from_iterable(calls), maxlen=0)
    except BaseException:
        if was_enabled == [True]:
            gc.enable()
        raise


def may_have_audit_hooks() -> bool:
    """Whether a hook of `sys.addaudithook` written in Python would run inside calls of `gc`.

    False on Python 3.10, which cannot tell. The interpreter does not list its hooks. But at the end of the
    stack of Python functions no hook can be called any more, and `sys.audit` fails if there is one.
    """
    if not _FRAMES_APART:
        return False
    return sys.getrecursionlimit() > _DEEPEST or _at_the_end()


def _at_the_end() -> bool:
    try:
        return _at_the_end()
    except RecursionError:
        pass
    try:
        sys.audit("heapwatch.probe")
    except RecursionError:
        return True
    return False


class Large(NamedTuple):
    """An object's class and its own bytes, for a container those of its table.

    Of tensors with the same storage, the one that uses most of it.
    """

    type: str
    nbytes: int


def large_objects(nbytes: float = 10e6, most: int = 20) -> list[Large]:
    """The `most` largest objects of at least `nbytes`, largest first; shared memory counts once.

    It visits every object that the garbage collector tracks, and the untracked objects that these refer to.
    This takes about a second for a million objects and stops the program meanwhile, so it runs only on
    request.
    """
    largest: dict[int, Large] = {}
    bases = (*_UNTRACKED, *classes("numpy", "ndarray"))
    untracked = {identity(cls) for base in bases for cls in with_subclasses(base)}
    tracked = tracked_objects()
    try:
        for obj in chain(tracked, untracked_objects(tracked, untracked)):
            layout = layout_of(type(obj))
            if layout.kind not in _LARGE:
                continue
            key, size = _memory(obj, layout)
            if size >= nbytes and (key not in largest or size > largest[key].nbytes):
                largest[key] = Large(type_of(obj), size)
    finally:
        tracked.clear()  # it has frames that hold this function's, until Python 3.10
    return nlargest(most, largest.values(), key=lambda large: large.nbytes)


def _memory(obj: Any, layout: Layout) -> tuple[int, int]:
    """The identity of an object's memory, and its bytes: of a container those of its table alone."""
    if layout.kind in _CONTAINERS:
        return id(obj), own_bytes(obj, type(obj))
    return memory_key(obj, layout) or id(obj), array_bytes(obj, layout) or 0
