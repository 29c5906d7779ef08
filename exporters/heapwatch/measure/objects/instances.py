"""Counts live instances of watched classes among the objects that the garbage collector tracks.

The count makes one list of pointers, runs no code of the watched classes, and keeps and collects nothing. It
holds the GIL all the time, so the whole program stops meanwhile.

Classes that the collector does not track (`numpy.ndarray`) are estimated, see `untracked` beside this.
Objects that `gc.freeze()` moved to the permanent generation are not counted.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.objects.tracked import tracked_types
from heapwatch.measure.objects.untracked import Untracked, is_untracked


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

    def count(self, cls: type) -> None:
        """Count `cls` from now on.

        It is counted under its name, with its module in front if another watched class has the same name.
        """
        name = cls.__name__
        if name in self._watched and self._watched[name]() not in (cls, None):
            name = f"{layout_of(cls).module}.{name}"
        self._watched[name] = weakref.ref(cls)

    def name_of(self, cls: type) -> str:
        """The name under which a class is counted. Raises KeyError if it is not counted."""
        for name, counted in self._watched.items():
            if counted() is cls:
                return name
        raise KeyError(cls)

    def take(self) -> dict[str, float]:
        """Live instances by name, without classes that were deleted or that cannot be estimated yet."""
        families = {name: set(_family(cls)) for name, cls in self._classes()}
        wanted = set(chain.from_iterable(families.values()))
        untracked = set(filter(is_untracked, wanted))
        # All in C: a Python loop over a million objects would take ten times as long.
        counts: Mapping[type, float] = Counter(filter(wanted.__contains__, tracked_types()))
        if untracked:
            estimated = self._untracked.count(untracked)
            if estimated is None:
                families = {name: family for name, family in families.items() if not family & untracked}
            else:
                counts = {**counts, **estimated}
        return {name: round(sum(counts.get(cls, 0) for cls in family)) for name, family in families.items()}

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
