"""Counts live instances of watched classes among the objects that the garbage collector tracks.

The count lists the types of the objects, runs no code of the watched classes, and keeps and collects
nothing. While the list is made, the whole program stops.

Instances of classes that the collector does not track, such as `numpy.ndarray`, are found through what
tracked objects refer to, also inside untracked dicts and tuples; each counts once. Those to which only local
variables or C structures refer are not found. Objects that `gc.freeze()` moved to the permanent generation
are not counted.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import chain

from heapwatch.measure.introspection.layout import HAS_GC, flags_of, identity, layout_of
from heapwatch.measure.objects.tracked import (
    may_have_audit_hooks,
    tracked_objects,
    type_keys,
    untracked_objects,
    with_subclasses,
)


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
        classes = {
            name: list(with_subclasses(cls))
            for name, cls in self._classes()
            if tracked in (None, is_tracked(cls))
        }
        if not classes:
            return {}
        # `id` takes half the time, but calls audit hooks.
        key = identity if may_have_audit_hooks() else id
        counts = Counter(type_keys({key(cls) for cls in chain.from_iterable(classes.values())}, key))
        untracked = {identity(cls) for cls in chain.from_iterable(classes.values()) if not is_tracked(cls)}
        others = _untracked(untracked) if untracked else Counter[int]()
        families = {name: {key(cls): cls for cls in family} for name, family in classes.items()}
        return {
            name: sum(counts[place] + others[identity(cls)] for place, cls in family.items())
            for name, family in families.items()
        }

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


def _untracked(types: Set[int]) -> Counter[int]:
    """Instances of classes that the collector does not track, by the `identity` of their class.

    Args:
        types: the classes, by their `identity`.

    """
    counted: dict[int, int] = {}  # classes by instance
    for instance in untracked_objects(tracked_objects(), types):
        obj = instance
        while identity(type(obj)) in types and identity(obj) not in counted:
            counted[identity(obj)] = identity(type(obj))
            obj = getattr(obj, "base", None)  # of a view
    return Counter(counted.values())
