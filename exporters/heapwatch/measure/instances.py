"""Live instances of watched classes, counted in one walk over what the garbage collector tracks.

The walk makes one list of pointers, runs no code of the watched classes, keeps and collects nothing. It
holds the interpreter's lock from beginning to end: its cost is a stall of the whole program.

Classes that the collector does not track (`numpy.ndarray`) are estimated, see `heapwatch.measure.untracked`.
What `gc.freeze()` moved to its permanent generation is not seen.
"""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from heapwatch.measure.layout import layout_of
from heapwatch.measure.untracked import Untracked, is_untracked


class Census:
    """Counts instances, those of subclasses included, without a reference to class or instance.

    Args:
        classes: what to count.

    """

    def __init__(self, classes: Iterable[type] = ()) -> None:
        self._watched: dict[str, weakref.ref[type]] = {}
        self._untracked = Untracked()
        for cls in classes:
            self.count(cls)

    def count(self, cls: type) -> None:
        """Count `cls` from now on.

        Its name in the counts is its own, behind its module where another class of that name is watched.
        """
        name = cls.__name__
        if name in self._watched and self._watched[name]() not in (cls, None):
            name = f"{layout_of(cls).module}.{name}"
        self._watched[name] = weakref.ref(cls)

    def name_of(self, cls: type) -> str:
        """The name of a counted class in the counts. Raises KeyError for one that is not counted."""
        for name, counted in self._watched.items():
            if counted() is cls:
                return name
        raise KeyError(cls)

    def take(self) -> dict[str, float]:
        """Live instances by name; left out are classes that were deleted, or could not be estimated yet."""
        families = {name: set(_family(cls)) for name, cls in self._classes()}
        wanted = set(chain.from_iterable(families.values()))
        untracked = set(filter(is_untracked, wanted))
        objects = gc.get_objects()
        # All in C: a Python loop over a million objects would take ten times as long.
        counts: Mapping[type, float] = Counter(filter(wanted.__contains__, map(type, objects)))
        if untracked:
            estimated = self._untracked.count(objects, untracked)
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
    """`cls` and its subclasses at any depth; one below two of them comes twice."""
    yield cls
    subclasses: list[type] = type.__subclasses__(cls)
    for subclass in subclasses:
        yield from _family(subclass)
