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
        self._classes_by_name: dict[str, weakref.ref[type]] = {}
        for cls in classes:
            self.count(cls)

    def count(self, cls: type) -> str:
        """Count `cls` from now on; returns the name under which it is counted.

        That is its own, with its module in front if another watched class has the same.
        """
        name = cls.__name__
        other = self._classes_by_name[name]() if name in self._classes_by_name else None
        if other is not None and other is not cls:
            name = f"{layout_of(cls).module}.{name}"
        self._classes_by_name[name] = weakref.ref(cls)
        return name

    def has(self, *, tracked: bool) -> bool:
        """Whether it counts any class that the collector tracks, or one that it does not."""
        return any(is_tracked(cls) == tracked for _, cls in self._classes())

    def take(self, *, tracked: bool | None = None) -> dict[str, float]:
        """Live instances by name, without classes that were deleted.

        Args:
            tracked: count only the classes that the collector tracks, or only the others.

        """
        families_by_name = {
            name: list(_family(cls)) for name, cls in self._classes() if tracked in (None, is_tracked(cls))
        }
        if not families_by_name:
            return {}
        # `id` takes half the time, but calls audit hooks.
        key = identity if may_have_audit_hooks() else id
        families = {name: set(map(key, family)) for name, family in families_by_name.items()}
        classes = {key(cls): cls for cls in chain.from_iterable(families_by_name.values())}
        counts = Counter(type_keys(set(classes), key))
        if untracked := {place for place, cls in classes.items() if not is_tracked(cls)}:
            counts += _untracked(untracked, key)
        return {name: sum(counts[cls_key] for cls_key in family) for name, family in families.items()}

    def _classes(self) -> Iterator[tuple[str, type]]:
        for name, holder in list(self._classes_by_name.items()):
            cls = holder()
            if cls is None:
                del self._classes_by_name[name]
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


def _untracked(wanted_keys: Set[int], key: Callable[[type], int]) -> Counter[int]:
    """Instances of classes that the collector does not track, by the key of their class.

    Args:
        wanted_keys: keys of the classes.
        key: of a class.

    """
    tracked, waiting = tracked_and_in_tuples()
    in_tuples = bool(waiting)  # then it is what all tracked tuples refer to
    container_keys = {key(dict), key(tuple)}
    relevant = wanted_keys | container_keys
    classes: dict[int, int] = {}  # of the instances, by their identity
    visited: set[int] = set()
    for start in range(0, len(tracked), _CHUNK):
        waiting += gc.get_referents(*tracked[start : start + _CHUNK])
        while waiting:
            # All in C until few are left: there are several references to an object.
            relevant_objects = list(
                compress(waiting, map(relevant.__contains__, map(key, map(type, waiting))))
            )
            if in_tuples:
                relevant_objects = list(
                    compress(relevant_objects, map(not_, map(gc.is_tracked, relevant_objects)))
                )
            instances = [obj for obj in relevant_objects if key(type(obj)) in wanted_keys]
            classes.update((identity(obj), key(type(obj))) for obj in instances)
            containers = [obj for obj in relevant_objects if key(type(obj)) in container_keys]
            containers = [obj for obj in containers if type(obj) is tuple or not gc.is_tracked(obj)]
            unvisited = {place: obj for obj in containers if (place := identity(obj)) not in visited}
            visited.update(unvisited)
            bases = [base for obj in instances if (base := getattr(obj, "base", None)) is not None]
            waiting = gc.get_referents(*unvisited.values()) + bases
    return Counter(classes.values())
