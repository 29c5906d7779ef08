"""Reference cycles that stay while the garbage collector is switched off.

The number of objects in the youngest generation is cheap to read, but it counts living objects, too. So the
newest objects are examined as the collector does: what only others of them refer to is garbage. Nothing is
freed.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from heapwatch.explain.census import Census
from heapwatch.explain.series import LevelSeries
from heapwatch.measure.deep_size import OutOfTime, deep_size
from heapwatch.measure.layout import layout_of
from heapwatch.measure.sampling import ContainerChanged
from heapwatch.measure.type_information import own_bytes

_MOST_EXAMINED = 10_000
_BUDGET_SECONDS = 0.02
_TYPES_NAMED = 3
_COMMON = 0.1  # least share of the objects for a type that is named
_MOST_DICTS, _MOST_KEYS, _MOST_FOLLOWED = 50, 50, 40


class Garbage(NamedTuple):
    """Garbage among the objects that were added since the collector was switched off.

    Attributes:
        objects: their number, estimated from the newest.
        bytes: what they hold; None where it was not measured.
        types: names of their commonest types, the commonest first.
        key: the commonest key or attribute under which a dict leads back to itself; None if there is none.

    """

    objects: float
    bytes: float | None
    types: tuple[str, ...]
    key: str | None = None


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
        # Those from before the first reading are the program's modules and what they set up.
        added = max(0, round((self.counts.last or 0.0) - min(bucket.least for bucket in since)))
        added = min(added, len(objects))
        del objects[: -min(added, _MOST_EXAMINED) or None]
        found = unreachable(objects)
        scale = added / max(1, len(objects))
        types = Counter(layout_of(type(objects[at])).qualified_name for at in found)
        nbytes, key = _bytes_of(objects, found), _closing_key(objects, found)
        objects.clear()
        common = types.most_common(_TYPES_NAMED)
        names = tuple(name for name, count in common if count >= _COMMON * len(found))
        self.latest = Garbage(scale * len(found), None if nbytes is None else scale * nbytes, names, key)
        self._garbage.add(self._clock(), self.latest.objects)

    def per_second(self, start: float) -> float:
        """Objects of garbage that were added in a second since `start`; 0 if there were fewer at the end."""
        first = self._garbage.since(float("-inf"))[:1]
        begin = max([start, *(bucket.end for bucket in first)])
        before, elapsed = self._garbage.at(begin), self._garbage.read_at - begin
        if before is None or elapsed <= 0:
            return 0.0
        return max(0.0, ((self._garbage.last or 0.0) - before) / elapsed)


def unreachable(objects: list[Any]) -> list[int]:
    """Positions of the objects that only others of them refer to, by the collector's own rule.

    No other variable of the caller may refer to them. An object that changes meanwhile counts as alive.
    """
    position = {id(obj): at for at, obj in enumerate(objects)}
    outer = [count - _HELD for count in map(sys.getrefcount, objects)]
    parts: list[list[int]] = []
    for obj in objects:
        held = [position[key] for key in map(id, gc.get_referents(obj)) if key in position]
        parts.append(held)
        for at in held:
            outer[at] -= 1
    ahead = [at for at, count in enumerate(outer) if count]
    alive = set(ahead)
    while ahead:
        for at in parts[ahead.pop()]:
            if at not in alive:
                alive.add(at)
                ahead.append(at)
    return [at for at in range(len(outer)) if at not in alive]


def _closing_key(objects: list[Any], chosen: list[int]) -> str | None:
    """The commonest key under which a dict among these objects leads back to itself."""
    inside = {id(objects[at]) for at in chosen}
    dicts = [objects[at] for at in chosen if type(objects[at]) is dict][-_MOST_DICTS:]
    keys: Counter[str] = Counter()
    for one in dicts:
        for key, value in list(dict.items(one))[:_MOST_KEYS]:
            if type(key) is str and id(value) in inside and _leads_to(value, one, inside):
                keys[key] += 1
    return keys.most_common(1)[0][0] if keys else None


def _leads_to(start: Any, target: Any, inside: set[int]) -> bool:
    ahead, seen = [start], {id(start)}
    while ahead and len(seen) < _MOST_FOLLOWED:
        obj = ahead.pop(0)
        if obj is target:
            return True
        for part in gc.get_referents(obj):
            if id(part) in inside and id(part) not in seen:
                seen.add(id(part))
                ahead.append(part)
    return False


def _bytes_of(objects: list[Any], chosen: list[int]) -> float | None:
    """Bytes of these objects and of untracked ones, such as arrays, to which nothing else refers."""
    total = 0.0
    references: dict[int, int] = {}
    untracked: list[Any] = []
    for at in chosen:
        kind = type(objects[at])
        if layout_of(kind).kind == "tensor":
            untracked.append(objects[at])
            references[id(objects[at])] = sys.maxsize
            continue
        total += own_bytes(objects[at], kind)
        for part in gc.get_referents(objects[at]):
            if not gc.is_tracked(part):
                if id(part) not in references:
                    untracked.append(part)
                references[id(part)] = references.get(id(part), 0) + 1
    part = None
    wanted = [count - _HELD for count in map(sys.getrefcount, untracked)]
    leaves = [leaf for leaf, count in zip(untracked, wanted, strict=True) if references[id(leaf)] >= count]
    untracked.clear()
    try:
        size = deep_size(leaves, budget_seconds=_BUDGET_SECONDS)
    except (OutOfTime, ContainerChanged, RuntimeError):
        return None
    if size.unread:
        return None
    return total + size.bytes + size.gpu_bytes + size.shared_bytes


# What `sys.getrefcount` says of an object in a list, to which nothing else refers.
_HELD = next(map(sys.getrefcount, [object()]))
