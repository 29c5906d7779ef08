"""Finds reference cycles that stay while the garbage collector is switched off."""

from __future__ import annotations

import gc
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from heapwatch.explain.census import Census
from heapwatch.judge.level import LevelSeries
from heapwatch.measure.introspection.containers import first_items
from heapwatch.measure.introspection.layout import layout_of, own_bytes
from heapwatch.measure.introspection.names import qualified_type_name
from heapwatch.measure.sizing.deep_size import deep_size
from heapwatch.measure.sizing.sampling import ContainerChanged
from heapwatch.measure.sizing.traversal import OutOfTime

_MOST_EXAMINED = 10_000
_TYPES_NAMED = 3
_COMMON = 0.1  # least share of the objects for a type that is named


class Garbage(NamedTuple):
    """Garbage among the newest objects.

    Attributes:
        objects: their number.
        share: share of the examined objects that are garbage, 0 to 1.
        bytes: what they hold; None where it was not measured.
        types: names of their commonest types, the commonest first.
        key: the commonest key under which a dict holds itself; None if there is none.

    """

    objects: int
    share: float
    bytes: float | None
    types: tuple[str, ...]
    key: str | None = None

    @property
    def each_bytes(self) -> float | None:
        """Bytes for each object; None where they were not measured."""
        return None if self.bytes is None or not self.objects else self.bytes / self.objects


class Uncollected:
    """Follows the objects that are added while the collector is switched off.

    Args:
        census: lists all objects, if that does not take too long.
        clock: monotonic seconds.

    Attributes:
        counts: number of objects in the youngest generation, over time.
        garbage: how many of them are garbage, over time.
        latest: the garbage among the newest objects; None before the first examination.

    """

    def __init__(self, census: Census, clock: Callable[[], float] = time.monotonic) -> None:
        self.counts = LevelSeries()
        self.garbage = LevelSeries()
        self.latest: Garbage | None = None
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

    def per_second(self, start: float) -> float:
        """Objects of garbage per second since `start`; two examinations are enough."""
        first = self.garbage.since(float("-inf"))[:1]
        begin = max([start, *(bucket.end for bucket in first)])
        initial, elapsed = self.garbage.at(begin), self.garbage.read_at - begin
        if initial is None or elapsed <= 0:
            return 0.0
        return max(0.0, ((self.garbage.last or 0.0) - initial) / elapsed)

    def _examine(self, objects: list[Any], start: float) -> None:
        new = next((index for index, obj in enumerate(reversed(objects)) if obj is self._mark), None)
        begins = new is None or self.latest is None
        if begins:  # the first time, or a collection has moved the mark, and perhaps freed the garbage
            self.garbage = LevelSeries()
            self.garbage.add(start, 0.0)
        new = len(objects) if new is None else new
        examined = min(new, _MOST_EXAMINED)
        del objects[: len(objects) - examined]
        objects += tuples_in(objects)
        uncollected = unreachable(objects)
        # The newest stand for all that came since the last time, not for what had come before.
        scale = 1.0 if begins else new / max(1, examined)
        self.garbage.add(self._clock(), (self.garbage.last or 0.0) + scale * len(uncollected))
        if uncollected or begins:
            types = Counter(qualified_type_name(layout_of(type(objects[index]))) for index in uncollected)
            common = types.most_common(_TYPES_NAMED)
            self.latest = Garbage(
                len(uncollected),
                len(uncollected) / max(1, len(objects)),
                bytes_held(objects, uncollected),
                tuple(name for name, number in common if number >= _COMMON * len(uncollected)),
                closing_key(objects, uncollected),
            )


_BUDGET_SECONDS = 0.02
_MOST_DICTS, _MOST_KEYS = 50, 50
# What `sys.getrefcount` says of an object in a list, to which nothing else refers.
_HELD = next(map(sys.getrefcount, [object()]))


def tuples_in(objects: list[Any]) -> list[Any]:
    """Tracked tuples to which these objects refer, also inside other such tuples."""
    tuples: dict[int, Any] = {}
    parts = gc.get_referents(*objects)
    while parts:
        part = parts.pop()
        if type(part) is tuple and id(part) not in tuples and gc.is_tracked(part):
            tuples[id(part)] = part
            parts += gc.get_referents(part)
    return list(tuples.values())


def unreachable(objects: list[Any]) -> list[int]:
    """Indices of the objects in cycles to which nothing else refers, and of the objects that these hold.

    This is the collector's own rule. Objects that only the list holds are left out, since they would be freed
    without a collector. No other variable of the caller may refer to the objects. An object that changes
    meanwhile counts as alive.
    """
    indices = {id(obj): index for index, obj in enumerate(objects)}
    outside = [count - _HELD for count in map(sys.getrefcount, objects)]  # references from elsewhere
    parts: list[list[int]] = []
    for obj in objects:
        referents = [indices[key] for key in map(id, gc.get_referents(obj)) if key in indices]
        parts.append(referents)
        for index in referents:
            outside[index] -= 1
    pending = [index for index, count in enumerate(outside) if count]
    alive = set(pending)
    while pending:
        for index in parts[pending.pop()]:
            if index not in alive:
                alive.add(index)
                pending.append(index)
    dead = {index for index in range(len(outside)) if index not in alive}
    references = Counter(part for index in dead for part in parts[index] if part in dead)
    pending = [index for index in dead if not references[index]]
    while pending:
        index = pending.pop()
        dead.discard(index)
        for part in parts[index]:
            references[part] -= 1
            if not references[part]:
                pending.append(part)
    return sorted(dead)


def closing_key(objects: list[Any], chosen: list[int]) -> str | None:
    """The commonest key under which a dict among these objects holds itself."""
    dicts = [objects[index] for index in chosen if type(objects[index]) is dict][-_MOST_DICTS:]
    keys = Counter(
        key
        for obj in dicts
        for key, value in first_items(obj, _MOST_KEYS, dict.items)
        if value is obj and type(key) is str
    )
    return keys.most_common(1)[0][0] if keys else None


def bytes_held(objects: list[Any], chosen: list[int]) -> float | None:
    """Bytes of these objects and of untracked ones, such as arrays, to which nothing else refers.

    None where they cannot be measured in time.
    """
    total = 0.0
    references: dict[int, int] = {}
    untracked: list[Any] = []
    for index in chosen:
        kind = type(objects[index])
        if layout_of(kind).kind == "tensor":
            untracked.append(objects[index])
            references[id(objects[index])] = sys.maxsize
            continue
        total += own_bytes(objects[index], kind)
        for part in gc.get_referents(objects[index]):
            if not gc.is_tracked(part):
                if id(part) not in references:
                    untracked.append(part)
                references[id(part)] = references.get(id(part), 0) + 1
    part = None
    counts = [count - _HELD for count in map(sys.getrefcount, untracked)]
    leaves = [leaf for leaf, count in zip(untracked, counts, strict=True) if references[id(leaf)] >= count]
    untracked.clear()
    with suppress(OutOfTime, ContainerChanged, RuntimeError):
        size = deep_size(leaves, budget_seconds=_BUDGET_SECONDS)
        return None if size.unread else total + size.held_bytes
    return None
