"""Reference cycles that stay while the garbage collector is switched off.

The number of objects in the youngest generation is cheap to read, but it counts living objects, too. So the
newest objects are examined: which of them are `unreachable`.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from heapwatch.explain.census import Census
from heapwatch.explain.series import LevelSeries
from heapwatch.explain.unreachable import bytes_held, closing_key, tuples_in, unreachable, without_namespaces
from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.introspection.written import qualified_type_name

_MOST_EXAMINED = 10_000
_CHUNK = 10_000
_TYPES_NAMED = 3
_COMMON = 0.1  # least share of the objects for a type that is named


class Garbage(NamedTuple):
    """Garbage among the objects that were added since the collector was switched off.

    Attributes:
        objects: their number, estimated from the newest.
        bytes: what they hold; None where it was not measured.
        types: names of their commonest types, the commonest first.
        key: the commonest key or attribute under which a dict leads back to itself; None if there is none.
        share: share of the new objects that are garbage, 0 to 1.
        new: number of new objects, garbage or not.

    """

    objects: float
    bytes: float | None
    types: tuple[str, ...]
    key: str | None = None
    share: float = 1.0
    new: float = 0.0


class Uncollected:
    """Follows the objects that are added while the collector is switched off.

    Args:
        census: lists all objects, if that does not take too long.
        clock: monotonic seconds.

    Attributes:
        counts: number of objects in the youngest generation, over time.
        latest: the garbage found last; None if the objects were never examined.

    """

    def __init__(self, census: Census, clock: Callable[[], float] = time.monotonic) -> None:
        self.counts = LevelSeries()
        self.latest: Garbage | None = None
        self._garbage = LevelSeries()
        self._mark: list[Any] = []  # older than all objects that are new
        self._census = census
        self._clock = clock

    def count(self) -> None:
        """Read the number of objects in the youngest generation."""
        self.counts.add(self._clock(), gc.get_count()[0])

    def examine(self) -> None:
        """Find the garbage among the newest objects, unless listing them would take too long."""
        since = self.counts.since(float("-inf"))
        objects = self._census.youngest() if since else None
        if objects is None:
            return
        try:
            self._examine(objects, since[0].start)
        finally:
            objects.clear()
            self._mark = []

    def _examine(self, objects: list[Any], start: float) -> None:
        after = _after(self._mark, objects)
        if after is None or self.latest is None:
            # A collection took the mark out of the youngest generation, and maybe what was found.
            self.latest, self._garbage = None, LevelSeries()
            self._garbage.add(start, 0.0)
        new = len(objects) if after is None else after
        examined = min(new, _MOST_EXAMINED)
        del objects[: len(objects) - examined]
        objects += tuples_in(objects)
        found = unreachable(objects)
        # The newest stand for all that came since the last time, not for what had come before.
        scale = new / max(1, examined) if self.latest else 1.0
        counted = without_namespaces(objects, found)
        types = Counter(qualified_type_name(layout_of(type(objects[at]))) for at in counted)
        nbytes, key = bytes_held(objects, found), closing_key(objects, found)
        common = types.most_common(_TYPES_NAMED)
        added = Garbage(
            scale * len(counted),
            None if nbytes is None else scale * nbytes,
            tuple(name for name, number in common if number >= _COMMON * len(counted)),
            key,
            len(found) / max(1, len(objects)),
            scale * len(objects),
        )
        self.latest = added if self.latest is None else _together(self.latest, added)
        self._garbage.add(self._clock(), self.latest.objects)

    def per_second(self, start: float) -> float:
        """Objects of garbage that were added in a second since `start`; 0 if there were fewer at the end."""
        first = self._garbage.since(float("-inf"))[:1]
        begin = max([start, *(bucket.end for bucket in first)])
        before, elapsed = self._garbage.at(begin), self._garbage.read_at - begin
        if before is None or elapsed <= 0:
            return 0.0
        return max(0.0, ((self._garbage.last or 0.0) - before) / elapsed)


def _after(mark: object, objects: list[Any]) -> int | None:
    """How many of these objects, the oldest first, are after the mark; None if it is not among them."""
    for end in range(len(objects), 0, -_CHUNK):
        ids = list(map(id, objects[max(0, end - _CHUNK) : end]))
        if id(mark) in ids:
            return len(objects) - end + len(ids) - 1 - ids.index(id(mark))
    return None


def _together(before: Garbage, new: Garbage) -> Garbage:
    """Both; where one was not measured, the other's bytes for each object are those of all."""
    objects = before.objects + new.objects
    measured = [one for one in (before, new) if one.bytes is not None and one.objects]
    held = sum(one.bytes or 0.0 for one in measured)
    nbytes = held * objects / sum(one.objects for one in measured) if measured else None
    added = before.new + new.new
    share = (before.share * before.new + new.share * new.new) / added if added else 0.0
    named = new if new.types else before
    return Garbage(objects, nbytes, named.types, named.key, share, added)
