"""Reference cycles that stay while the garbage collector is switched off.

The number of objects in the youngest generation is cheap to read, but it counts living objects, too. So the
newest objects are examined: which of them are `unreachable`.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from heapwatch.explain.census import Census
from heapwatch.explain.series import Bucket, LevelSeries
from heapwatch.explain.unreachable import bytes_held, closing_key, tuples_in, unreachable, without_namespaces
from heapwatch.measure.layout import layout_of
from heapwatch.measure.written import qualified_type_name

_MOST_EXAMINED = 10_000
_TYPES_NAMED = 3
_COMMON = 0.1  # least share of the objects for a type that is named


class Garbage(NamedTuple):
    """Garbage among the objects that were added since the collector was switched off.

    Attributes:
        objects: their number, estimated from the newest.
        bytes: what they hold; None where it was not measured.
        types: names of their commonest types, the commonest first.
        key: the commonest key or attribute under which a dict leads back to itself; None if there is none.
        share: share of the examined objects that are garbage, 0 to 1.

    """

    objects: float
    bytes: float | None
    types: tuple[str, ...]
    key: str | None = None
    share: float = 1.0


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
        self._census = census
        self._clock = clock

    def count(self) -> None:
        """Read the number of objects in the youngest generation."""
        self.counts.add(self._clock(), gc.get_count()[0])

    def examine(self) -> None:
        """Find the garbage among the newest objects, unless listing them would take too long."""
        since = self.counts.since(float("-inf"))
        if not since:
            return
        if self._garbage.last is None:
            self._garbage.add(since[0].start, 0.0)
        objects = self._census.youngest()
        if objects is None:
            return
        try:
            self._examine(objects, since)
        finally:
            objects.clear()

    def _examine(self, objects: list[Any], since: Sequence[Bucket]) -> None:
        # Those from before the first reading are the program's modules and what they set up.
        added = max(0, round((self.counts.last or 0.0) - min(bucket.least for bucket in since)))
        young, examined = len(objects), min(added, len(objects), _MOST_EXAMINED)
        del objects[: -examined or None]
        objects += tuples_in(objects)
        with_tuples = len(objects) / max(1, examined)
        found = unreachable(objects)
        scale = min(added, young * with_tuples) / max(1, len(objects))
        counted = without_namespaces(objects, found)
        types = Counter(qualified_type_name(layout_of(type(objects[at]))) for at in counted)
        nbytes, key = bytes_held(objects, found), closing_key(objects, found)
        share = len(found) / max(1, len(objects))
        common = types.most_common(_TYPES_NAMED)
        names = tuple(name for name, count in common if count >= _COMMON * len(counted))
        self.latest = Garbage(
            scale * len(counted), None if nbytes is None else scale * nbytes, names, key, share
        )
        self._garbage.add(self._clock(), self.latest.objects)

    def per_second(self, start: float) -> float:
        """Objects of garbage that were added in a second since `start`; 0 if there were fewer at the end."""
        first = self._garbage.since(float("-inf"))[:1]
        begin = max([start, *(bucket.end for bucket in first)])
        before, elapsed = self._garbage.at(begin), self._garbage.read_at - begin
        if before is None or elapsed <= 0:
            return 0.0
        return max(0.0, ((self._garbage.last or 0.0) - before) / elapsed)
