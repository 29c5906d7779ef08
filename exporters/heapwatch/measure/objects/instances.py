"""Counts live instances of watched classes among the objects that the garbage collector tracks.

The count makes one list of pointers, runs no code of the watched classes, and keeps and collects nothing. It
holds the GIL all the time, so the whole program stops meanwhile.

Instances of classes that the collector does not track, such as `numpy.ndarray`, are found through what
tracked objects refer to, also inside untracked dicts and tuples; each counts once. Those to which only local
variables or C structures refer are not found. Objects that `gc.freeze()` moved to the permanent generation
are not counted.
"""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import chain, compress
from operator import not_

from heapwatch.measure.introspection.layout import HAS_GC, flags_of, identity, layout_of
from heapwatch.measure.objects.tracked import may_have_audit_hooks, tracked_and_in_tuples, type_keys

_CHUNK = 4096  # objects whose referents are listed at a time


@dataclass(frozen=True)
class Census:
    """Instances by class, and when each class was counted last, in Unix time in seconds."""

    counts: Mapping[str, float] = field(default_factory=dict)
    at: Mapping[str, float] = field(default_factory=dict)


class InstanceCounter:
    """Counts instances, including those of subclasses, without references to classes or instances.

    Args:
        classes: the classes to count.

    """

    def __init__(self, classes: Iterable[type] = ()) -> None:
        self._watched: dict[str, weakref.ref[type]] = {}
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

    def has(self, *, tracked: bool) -> bool:
        """Whether it counts any class that the collector tracks, or one that it does not."""
        return any(is_tracked(cls) == tracked for _, cls in self._classes())

    def take(self, *, tracked: bool | None = None) -> dict[str, float]:
        """Live instances by name, without classes that were deleted.

        Args:
            tracked: count only the classes that the collector tracks, or only the others.

        """
        watched = {
            name: list(_family(cls)) for name, cls in self._classes() if tracked in (None, is_tracked(cls))
        }
        if not watched:
            return {}
        # `id` takes half the time, but calls audit hooks.
        key = identity if may_have_audit_hooks() else id
        families = {name: set(map(key, family)) for name, family in watched.items()}
        classes = {key(cls): cls for cls in chain.from_iterable(watched.values())}
        counts = Counter(type_keys(set(classes), key))
        if untracked := {place for place, cls in classes.items() if not is_tracked(cls)}:
            counts += _untracked(untracked, key)
        return {name: sum(counts[one] for one in family) for name, family in families.items()}

    def _classes(self) -> Iterator[tuple[str, type]]:
        for name, holder in list(self._watched.items()):
            cls = holder()
            if cls is None:
                del self._watched[name]
            else:
                yield name, cls


def is_tracked(cls: type) -> bool:
    """Whether the collector tracks the instances of a class."""
    return bool(flags_of(cls) & HAS_GC)


def _family(cls: type) -> Iterator[type]:
    """`cls` and its subclasses at any depth; one that is reached in two ways comes twice."""
    yield cls
    subclasses: list[type] = type.__subclasses__(cls)
    for subclass in subclasses:
        yield from _family(subclass)


def _untracked(wanted: Set[int], key: Callable[[type], int]) -> Counter[int]:
    """Instances of classes that the collector does not track, by the key of their class.

    Args:
        wanted: the keys of the classes.
        key: of a class.

    """
    tracked, waiting = tracked_and_in_tuples()
    in_tuples = bool(waiting)  # then it is what all tracked tuples refer to
    followed = {key(dict), key(tuple)}
    relevant = wanted | followed
    classes: dict[int, int] = {}  # of the instances, by their identity
    seen: set[int] = set()
    for start in range(0, len(tracked), _CHUNK):
        waiting += gc.get_referents(*tracked[start : start + _CHUNK])
        while waiting:
            # All in C until few are left: there are several references to an object.
            some = list(compress(waiting, map(relevant.__contains__, map(key, map(type, waiting)))))
            if in_tuples:
                some = list(compress(some, map(not_, map(gc.is_tracked, some))))
            found = [one for one in some if key(type(one)) in wanted]
            classes.update((identity(one), key(type(one))) for one in found)
            inside = [one for one in some if key(type(one)) in followed]
            inside = [one for one in inside if type(one) is tuple or not gc.is_tracked(one)]
            unseen = {place: one for one in inside if (place := identity(one)) not in seen}
            seen.update(unseen)
            bases = [base for one in found if (base := getattr(one, "base", None)) is not None]
            waiting = gc.get_referents(*unseen.values()) + bases
    return Counter(classes.values())
