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
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Set
from functools import partial
from heapq import nlargest
from itertools import chain, compress, repeat, starmap
from operator import is_, is_not, lt, not_
from typing import Any, NamedTuple
from weakref import ref

from heapwatch.measure.introspection.containers import array_bytes
from heapwatch.measure.introspection.layout import identity, layout_of
from heapwatch.measure.introspection.names import type_of
from heapwatch.measure.sizing.tensor_storage import array_data, memory_key

_MOST_OWN = 100  # more objects than a chain consists of
_DEEPEST = 5000
_FRAMES_APART = sys.version_info >= (3, 11)  # before, deep recursion needs the stack of C
_is_tuple = partial(is_, tuple)
_is_no_tuple = partial(is_not, tuple)
_is_reference = ref.__subclasscheck__  # of a type, without code of its metaclass

_CONTAINERS = (list, dict, set, frozenset, tuple)  # of these their own bytes, without their items
# The identity of an object's memory, and its bytes; 0 if another object owns them.
Own = Callable[[Any], tuple[int, int]]


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


def tracked_objects(type_ids: Collection[int] | None = None, generation: int | None = None) -> list[Any]:
    """Tracked objects, of each generation the oldest first.

    Args:
        type_ids: only objects whose type is exactly one of these, given by their ids.
        generation: only objects of this generation of the collector.

    """
    lists: list[list[Any]] = []
    has_hooks = may_have_audit_hooks()
    of_all = type_ids is None or has_hooks
    selection = _without_tuples(lists) if of_all else _of_types(lists, {*(type_ids or ())} - {id(tuple)})
    objects = _run_selection(lists, map(gc.get_objects, (generation,)), selection)
    if has_hooks and type_ids is not None:
        objects = [obj for obj in objects if id(type(obj)) in type_ids]
    for index in range(max(0, len(objects) - _MOST_OWN), len(objects)):
        if objects[index] is lists:  # it and what follows was made here
            del objects[index:]
            break
    return objects


def tracked_and_in_tuples() -> tuple[list[Any], list[Any]]:
    """Tracked objects, and what the tuples among them refer to, an entry for each reference.

    An audit hook of the program would run while the tuples are referred to. So there the second list is
    empty, and it is left to the caller to find the tuples to which another object refers: these are complete.
    """
    lists: list[list[Any]] = []
    inside: list[list[Any]] = []
    results: list[list[Any]] = []
    steps = [
        _each(map(lists.append, map(gc.get_objects, (None,)))),
        _each(map(results.append, map(list, (_without_tuples(lists),)))),
    ]
    if not may_have_audit_hooks():
        steps += [
            _each(map(inside.append, starmap(gc.get_referents, (_of_type(lists, _is_tuple),)))),
            _each(map(results.append, map(list, (_no_references(inside),)))),
        ]
    _run(*steps, _each(map(list.clear, chain(lists, inside))))
    in_tuples = results.pop() if len(results) > 1 else []
    return results.pop(), in_tuples


def referrers(obj: Any) -> list[Any]:
    """What refers to `obj`, without tuples and weak references."""
    lists: list[list[Any]] = []
    return _run_selection(lists, starmap(gc.get_referrers, ((obj,),)), _without_tuples(lists))


def referrers_of_tuples(obj: Any) -> list[Any]:
    """What refers to the tuples that hold `obj`, without tuples and weak references.

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


def _no_references(lists: list[list[Any]]) -> Iterator[Any]:
    types = map(type, chain.from_iterable(lists))
    return compress(chain.from_iterable(lists), map(not_, map(_is_reference, types)))


def _of_types(lists: list[list[Any]], type_ids: set[int]) -> Iterator[Any]:
    ids = map(id, map(type, chain.from_iterable(lists)))  # a type's own hash may be code of the program
    return compress(chain.from_iterable(lists), map(type_ids.__contains__, ids))


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
    """Whether a hook of `sys.addaudithook` written in Python would run inside calls of `gc` or `id`.

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
    of_classes: dict[int, Own | None] = {}
    tracked, in_tuples = tracked_and_in_tuples()
    try:
        for obj in chain(tracked, _untracked_and_tuples(tracked, in_tuples)):
            cls = type(obj)
            kind = identity(cls)
            if kind not in of_classes:
                of_classes[kind] = _reader(cls)
            read_memory = of_classes[kind]
            if read_memory is None:
                continue
            key, size = read_memory(obj)
            if size >= nbytes and (key not in largest or size > largest[key].nbytes):
                largest[key] = Large(type_of(obj), size)
    finally:
        tracked.clear()  # it has frames that hold this function's, until Python 3.10
        in_tuples.clear()
    return nlargest(most, largest.values(), key=lambda large: large.nbytes)


def _untracked_and_tuples(tracked: list[Any], in_tuples: list[Any]) -> Iterator[Any]:
    """Tuples, and what the collector does not track, such as arrays, also in untracked dicts."""
    visited: set[int] = set()
    for parts in chain([in_tuples], (gc.get_referents(obj) for obj in tracked if obj is not tracked)):
        while parts:
            part = parts.pop()
            if gc.is_tracked(part) and type(part) is not tuple:
                continue
            yield part
            kind = type(part)  # the collector does not track a dict while all its items are untracked
            if (kind is tuple or kind is dict) and id(part) not in visited:
                visited.add(id(part))
                parts += gc.get_referents(part)


def _reader(cls: type) -> Own | None:
    """The function that reads the memory of an instance; None for classes whose instances own none."""
    if any(cls is kind for kind in _CONTAINERS):
        return lambda obj: (id(obj), obj.__sizeof__())
    kind = layout_of(cls).kind
    return {"array": _array, "tensor": _tensor, "text": _raw, "raw": _raw}.get(kind)


def _array(array: Any) -> tuple[int, int]:
    key, size = array_data(array)
    return key or id(array), size


def _tensor(tensor: Any) -> tuple[int, int]:
    layout = layout_of(type(tensor))
    return memory_key(tensor, layout) or id(tensor), array_bytes(tensor, layout) or 0


def _raw(text: Any) -> tuple[int, int]:
    return id(text), array_bytes(text, layout_of(type(text))) or 0
