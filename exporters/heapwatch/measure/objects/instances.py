"""Counts live instances of watched classes among the objects that the garbage collector tracks.

The count makes one list of pointers, runs no code of the watched classes, and keeps and collects nothing. It
holds the GIL all the time, so the whole program stops meanwhile.

Instances of classes that the collector does not track, such as `numpy.ndarray`, are found through what
tracked objects refer to. Each reference counts as one over the number of references that the object has, so
an object counts once in total: multiplicity weighting, Z. W. Birnbaum and M. G. Sirken, Design of Sample
Surveys to Estimate the Prevalence of Rare Diseases (1965). References from local variables or C structures
are not found and make the result too low. Objects that `gc.freeze()` moved to the permanent generation are
not counted.
"""

from __future__ import annotations

import gc
import sys
import time
import types
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from itertools import chain, compress, filterfalse
from typing import Any, NamedTuple

from heapwatch.measure.introspection.layout import HAS_GC, flags_of, identity, layout_of
from heapwatch.measure.objects.tracked import (
    may_have_audit_hooks,
    tracked_count,
    tracked_slices,
    tracked_types,
)
from heapwatch.measure.sizing.sampling import CONTAINERS, ContainerChanged, pick, positions

_SLICE = 20_000  # tracked objects looked at in one reading
# Of CPU time, in one reading until all slices have been seen once, so that a count exists soon.
_FIRST_SECONDS = 0.1
_CHUNK = 4096  # objects whose referents are listed at a time
_LONG = 256  # items of a container that is sampled
_SAMPLES = 64
_DEEPEST = 4  # levels of nested untracked dicts and tuples, or of views of views

# Types of the interpreter's own objects, which hold no data of the program.
_IGNORED = frozenset(
    map(
        identity,
        (
            type,
            types.BuiltinFunctionType,
            types.CodeType,
            types.GetSetDescriptorType,
            types.MemberDescriptorType,
            types.MethodDescriptorType,
            types.WrapperDescriptorType,
            types.GenericAlias,
        ),
    )
)
_FOLLOWED = frozenset(map(identity, (dict, tuple)))
_SAMPLED = frozenset(map(identity, CONTAINERS))


class Census(NamedTuple):
    """Instances by class, and when they were counted: Unix time in seconds; None if they never were."""

    counts: dict[str, float]
    at: float | None = None


class InstanceCounter:
    """Counts instances, including those of subclasses, without references to classes or instances.

    Args:
        classes: the classes to count.

    """

    def __init__(self, classes: Iterable[type] = ()) -> None:
        self._watched: dict[str, weakref.ref[type]] = {}
        self._untracked = Untracked()
        for cls in classes:
            self.count(cls)

    def count(self, cls: type) -> str:
        """Count `cls` from now on; returns the name under which it is counted.

        That is its own, with its module in front if another watched class has the same.
        """
        name = cls.__name__
        known = self._watched[name]() if name in self._watched else None
        if known is not None and known is not cls:
            name = f"{layout_of(cls).module}.{name}"
        self._watched[name] = weakref.ref(cls)
        return name

    def take(self) -> dict[str, float]:
        """Live instances by name, without classes that were deleted or that cannot be estimated yet."""
        watched = {name: list(_family(cls)) for name, cls in self._classes()}
        families = {name: set(map(identity, family)) for name, family in watched.items()}
        # `id` takes half the time, but calls audit hooks.
        key = identity if may_have_audit_hooks() else id
        classes = {key(cls): cls for cls in chain.from_iterable(watched.values())}
        untracked = {identity(cls) for cls in classes.values() if not flags_of(cls) & HAS_GC}
        # All in C: a Python loop over a million objects would take ten times as long.
        found = Counter(filter(classes.__contains__, map(key, tracked_types())))
        counts: dict[int, float] = {identity(classes[one]): number for one, number in found.items()}
        if untracked:
            estimated = self._untracked.count(untracked)
            if estimated is None:
                families = {name: family for name, family in families.items() if not family & untracked}
            else:
                counts |= estimated
        return {name: round(sum(counts.get(one, 0) for one in family)) for name, family in families.items()}

    def _classes(self) -> Iterator[tuple[str, type]]:
        for name, holder in list(self._watched.items()):
            cls = holder()
            if cls is None:
                del self._watched[name]
            else:
                yield name, cls


def _family(cls: type) -> Iterator[type]:
    """`cls` and its subclasses at any depth; one that is reached in two ways comes twice."""
    yield cls
    subclasses: list[type] = type.__subclasses__(cls)
    for subclass in subclasses:
        yield from _family(subclass)


class Untracked:
    """Counts one slice of the tracked objects at each reading; the result is the sum over all slices."""

    def __init__(self) -> None:
        self._next = 0
        self._total = 0
        self._slices: dict[int, dict[int, float]] = {}

    def count(self, wanted: Set[int]) -> dict[int, float] | None:
        """Estimated instances by the identity of their class; None until all slices were seen once.

        Args:
            wanted: the identities of classes, none of them tracked.

        """
        self._total = self._total or -(-tracked_count() // _SLICE)
        until = time.thread_time() + _FIRST_SECONDS
        while True:
            missing = [at for at in range(self._total) if at not in self._slices]
            slices, length = tracked_slices(missing or [self._next % self._total], _SLICE)
            while slices:
                at = next(iter(slices))
                self._slices[at] = _references(*slices.pop(at), wanted)
                self._next = at + 1
                if time.thread_time() > until:
                    slices.clear()
            self._total = -(-length // _SLICE)
            self._slices = {at: found for at, found in self._slices.items() if at < self._total}
            if len(self._slices) == self._total or time.thread_time() > until:
                break
        if len(self._slices) < self._total:
            return None
        counts: dict[int, float] = {}
        for found in self._slices.values():
            for key, number in found.items():
                counts[key] = counts.get(key, 0.0) + number
        return counts


def _references(objects: list[Any], in_tuples: list[Any] | None, wanted: Set[int]) -> dict[int, float]:
    """References to instances of `wanted`, each divided by all references to the instance.

    Args:
        objects: what holds them.
        in_tuples: what tuples hold, an entry for each reference; emptied. None: tuples are followed from the
            objects that hold them.
        wanted: the identities of the classes.

    """
    counts: dict[int, float] = {}
    through = in_tuples is None
    _follow(in_tuples or [], 1.0, wanted, counts, _DEEPEST)
    holders = [obj for obj in objects if identity(type(obj)) not in _IGNORED]
    long = [obj for obj in holders if identity(type(obj)) in _SAMPLED and len(obj) > _LONG]
    if long:
        known = set(map(id, long))
        holders = [obj for obj in holders if id(obj) not in known]
    for start in range(0, len(holders), _CHUNK):
        referents = gc.get_referents(*holders[start : start + _CHUNK])
        _follow(referents, 1.0, wanted, counts, _DEEPEST, through)
    for container in long:
        length = len(container)
        try:
            items = pick(container, positions(length, _SAMPLES))
        except ContainerChanged:
            continue
        if not items:
            continue
        weight = length / len(items)
        parts = [part for item in items for part in item]
        items.clear()
        _follow(parts, weight, wanted, counts, _DEEPEST, through)
    return counts


def _follow(
    referents: list[object],
    weight: float,
    wanted: Set[int],
    counts: dict[int, float],
    depth: int,
    through: bool = False,
) -> None:
    """Count `referents` of `wanted` types, also inside untracked containers; empties `referents`.

    With `through` also inside tracked tuples.
    """
    kinds = wanted | _FOLLOWED
    of_kinds = compress(referents, map(kinds.__contains__, map(identity, map(type, referents))))
    if through:
        found = [one for one in of_kinds if type(one) is tuple or not gc.is_tracked(one)]
    else:
        found = list(filterfalse(gc.is_tracked, of_kinds))
    referents.clear()
    occurrences = Counter(map(id, found))
    while found:
        obj = found.pop()
        occurrences[id(obj)] -= 1
        key = identity(type(obj))
        parts = [getattr(obj, "base", None)] if key in wanted else gc.get_referents(obj)
        if key not in wanted and kinds.isdisjoint(map(identity, map(type, parts))):
            continue
        share = weight / max(1, sys.getrefcount(obj) - _HELD - occurrences[id(obj)])
        if key in wanted:
            counts[key] = counts.get(key, 0.0) + share
        if depth:
            _follow(parts, share, wanted, counts, depth - 1, through)


def _references_held() -> int:
    """References that `sys.getrefcount` adds for an object just popped from a list."""
    stack = [object()]
    obj = stack.pop()
    return sys.getrefcount(obj)


_HELD = _references_held()
