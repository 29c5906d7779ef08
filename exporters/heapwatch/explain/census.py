"""Counts instances by type and finds the holders of those that grow, where no container explains the growth.

Listing all tracked objects stops the program. The time for it is predicted from the last time. If that is too
long, nothing is counted. The newest objects are counted meanwhile: most of the survivors are of the type that
grows.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import CO_GENERATOR
from itertools import chain, islice
from pathlib import Path
from types import CellType, FrameType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

from heapwatch.explain.findings import OUTSIDE, Finding
from heapwatch.explain.remedies import remedy_for_type
from heapwatch.explain.schedule import PAUSE_SECONDS, PauseLimit
from heapwatch.explain.sites import Site
from heapwatch.judge.level import FloorGrowth, LevelSeries
from heapwatch.measure.introspection.containers import first_items
from heapwatch.measure.introspection.layout import identity, layout_of
from heapwatch.measure.introspection.names import is_shown, qualified_type_name, type_of
from heapwatch.measure.introspection.roots import is_user_file
from heapwatch.measure.objects.tracked import (
    may_have_audit_hooks,
    referrers,
    referrers_of_tuples,
    tracked_objects,
    tracked_types,
)
from heapwatch.measure.process.own_time import own_time
from heapwatch.measure.sizing.deep_size import deep_size
from heapwatch.measure.sizing.sampling import ContainerChanged
from heapwatch.measure.sizing.traversal import OutOfTime

_CHUNK = 20_000
_FEWEST = 4  # instances of a type worth following: a few blocks of `itertools.tee` may keep all batches
_MOST_TYPES = 300
_STEP_SECONDS = 0.04  # to list objects and examine them; the next step continues
_RECENT_SECONDS = 300.0
_WEIGHED = 8
_WEIGHING_SECONDS = 0.005
# PyTorch makes the Python object of a storage when a tensor is measured, and keeps it as long as the storage.
_MADE_TO_MEASURE = "torch.storage.UntypedStorage"
_OWN = "module heapwatch"
_UNREAD = "perhaps tuples, which are not read under an audit hook"
_PACKAGE = str(Path(__file__).parents[1])
_LONG = 50
_MOST_LONG = 4
_DEEPEST = 6
_MOST_REFERRERS = 30
_LISTS = frozenset(map(identity, (list, dict, set, deque)))
_MOST_BLOCK_BYTES = 512  # of a block of Python's own allocator (SMALL_REQUEST_THRESHOLD of obmalloc.c)
_LEAST_NEWEST, _LEAST_NEWEST_SHARE = 50, 0.5  # least number and share of the growing type
_PLAIN = frozenset(
    ("function", "cell", "tuple", "list", "dict", "set", "frozenset", "builtin_function_or_method",
     "method", "weakref", "ReferenceType", "getset_descriptor", "property", "code", "frame", "type", "module",
     "generator", "str_iterator", "list_iterator", "traceback", "staticmethod", "classmethod", "partial",
     "wrapper_descriptor", "method_descriptor", "member_descriptor", "mappingproxy", "deque",
     "method-wrapper")
)  # fmt: skip


@dataclass(eq=False)
class GrowingType:
    """The number of instances of a type over time, their size and their holders.

    Attributes:
        name: the name of the class.
        counts: the number of its instances.
        each_bytes: typical deep size of an instance; None if it is unknown.
        holders: what refers to the newest, the nearest first; empty if no Python object does, None before
            the search.
        is_weighed: whether measuring it was tried.

    """

    name: str
    counts: LevelSeries = field(default_factory=LevelSeries)
    each_bytes: float | None = None
    holders: tuple[str, ...] | None = None
    is_weighed: bool = False


class Census:
    """Counts instances by type, and finds what refers to some of them.

    Args:
        clock: monotonic seconds.
        unlimited: whether listing all objects may take any time.
        fewest: number of instances from which a type is followed.

    Attributes:
        types: growing types, by the `identity` of the class.
        blocks: blocks of memory that Python has allocated.
        pause_limit: how long lists of objects take and may take.

    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        unlimited: bool = False,
        fewest: int = _FEWEST,
    ) -> None:
        self.types: dict[int, GrowingType] = {}
        self.pause_limit = PauseLimit(float("inf") if unlimited else PAUSE_SECONDS)
        self.blocks = LevelSeries()
        self._newest: Counter[str] = Counter()  # by name of the class, over all samples
        self._clock = clock
        self._fewest = fewest
        self._previous: dict[int, int] = {}  # the number of instances at the last count, by class
        self._first_at: float | None = None
        self._counted_at = 0.0
        self._lengths: dict[int, tuple[tuple[float, int], ...]] = {}
        self._findings: dict[int, Finding] = {}  # by id of the container
        self._step_seconds = float("inf") if unlimited else _STEP_SECONDS

    def count(self) -> bool:
        """Count the tracked objects by type; False if that would stop the program for too long."""
        now = self._clock()
        if not self.pause_limit.allows("types"):
            return False
        listed = self.pause_limit.timed(tracked_types, "types")
        counts: Counter[int] = Counter()
        names: dict[int, str] = {}
        while listed:
            kinds = listed[-_CHUNK:]
            del listed[-_CHUNK:]
            keys = list(map(identity, kinds))
            counts.update(keys)
            for key, kind in dict(zip(keys, kinds, strict=True)).items():
                if key not in names:
                    names[key] = _name_of(kind)
        previous = self._previous
        self._previous = {key: number for key, number in counts.items() if number >= self._fewest}
        for key, number in self._previous.items():
            growing_type = self.types.get(key)
            if growing_type is None or growing_type.name != names[key]:
                changed = key in previous and previous[key] != number
                if not changed or not names[key] or not self._make_room():
                    continue
                growing_type = self.types[key] = GrowingType(names[key])
                growing_type.counts.add(self._counted_at, previous[key])
            growing_type.counts.add(now, number)
        self._counted_at = now
        if self._first_at is None:
            self._first_at = now
        return True

    def count_newest(self) -> None:
        """Count the newest objects by type."""
        self.blocks.add(self._clock(), sys.getallocatedblocks())
        objects = self.youngest() or []
        kinds = list(map(type, objects))
        objects.clear()
        keys = list(map(identity, kinds))
        numbers = Counter(keys)
        for key, kind in dict(zip(keys, kinds, strict=True)).items():
            if (name := _name_of(kind)) and (name in self._newest or len(self._newest) < _MOST_TYPES):
                self._newest[name] += numbers[key]

    def probable_type(self, start: float, bytes_per_minute: float) -> str | None:
        """The type of most of the newest objects, if Python objects may be the growth since `start`."""
        blocks = self.blocks.growth(start)
        if not blocks.rising or 60 * blocks.per_second * _MOST_BLOCK_BYTES < bytes_per_minute:
            return None
        name, number = next(iter(self._newest.most_common(1)), ("", 0))
        is_most = number >= max(_LEAST_NEWEST, _LEAST_NEWEST_SHARE * self._newest.total())
        return name if is_most else None

    def _make_room(self) -> bool:
        """Drop types that do not grow if there are too many; returns whether one more can be followed."""
        if len(self.types) >= _MOST_TYPES:
            self.types = {key: kind for key, kind in self.types.items() if kind.counts.growth().total > 0}
        return len(self.types) < _MOST_TYPES

    @property
    def seconds(self) -> float:
        """Seconds from the first count to the last one; 0 if the last count is too old."""
        is_recent = self._clock() - self._counted_at <= _RECENT_SECONDS
        return 0.0 if self._first_at is None or not is_recent else self._counted_at - self._first_at

    def growing(self, start: float) -> list[tuple[GrowingType, FloorGrowth]]:
        """Types whose number of instances has risen since `start`, the fastest first."""
        growths = [(kind, kind.counts.growth(start)) for kind in list(self.types.values())]
        rising = [entry for entry in growths if entry[1].rising]
        return sorted(rising, key=lambda entry: -entry[1].per_second)

    def inspect(
        self, growing: Sequence[tuple[GrowingType, FloorGrowth]], anchors: Mapping[int, str], most: int
    ) -> None:
        """Measure instances of these types, and find the holders of the `most` that grow most in bytes.

        Works until its time slice ends; call again until `is_inspected`. Does nothing if listing all
        instances would stop the program for too long. `anchors` are paths by the id of their object.
        """
        until = own_time() + self._step_seconds
        selected = self._to_inspect(growing, most)
        types = {key: kind for key, kind in self.types.items() if kind in selected}
        if not self.pause_limit.allows("objects"):
            return
        listed = self.pause_limit.timed(
            lambda: [tracked_objects(types.keys(), generation) for generation in (2, 1, 0)], "objects"
        )  # the oldest generation of the collector comes first
        newest = _newest(listed, types)
        for objects in listed:
            objects.clear()
        hidden = set(map(id, newest.values()))

        has_time = True
        for key, kind in types.items():
            if has_time and not kind.is_weighed:
                kind.each_bytes = _typical_size(newest[key], anchors)
                kind.is_weighed = True
                has_time = own_time() <= until
        selected = self._to_inspect(growing, most)
        for key, kind in types.items():
            if has_time and newest[key] and kind in selected:
                path = next((anchors[id(obj)] for obj in newest[key] if id(obj) in anchors), None)
                kind.holders = (path,) if path else tuple(self._holders(newest[key][0], hidden, until))
                has_time = own_time() <= until
        for instances in newest.values():
            instances.clear()

    def is_inspected(self, growing: Sequence[tuple[GrowingType, FloorGrowth]], most: int) -> bool:
        """Whether `inspect` has nothing left to do."""
        return not self.pause_limit.allows("objects") or not self._to_inspect(growing, most)

    def _to_inspect(self, growing: Sequence[tuple[GrowingType, FloorGrowth]], most: int) -> list[GrowingType]:
        """The types without a size; then those of the `most` heaviest whose holders are not searched."""
        unweighed = [kind for kind, _ in growing if not kind.is_weighed]
        if unweighed:
            return unweighed
        heaviest = sorted(growing, key=lambda entry: -(entry[0].each_bytes or 0.0) * entry[1].per_second)
        return [kind for kind, _ in heaviest[:most] if kind.holders is None]

    def youngest(self) -> list[Any] | None:
        """Objects of the youngest generation, the newest last; None if listing them would take too long.

        Tuples are left out, see `heapwatch.measure.objects.tracked`.
        """
        if not self.pause_limit.allows_young():
            return None
        return self.pause_limit.timed(partial(tracked_objects, generation=0))

    def search(self, elsewhere: set[int]) -> list[Finding]:
        """Find containers, not `elsewhere`, that grew over the last three searches; the longest first.

        Between two searches only ids, lengths and findings are kept. If time runs out, the next search
        describes the rest.
        """
        if not self.pause_limit.allows("objects"):
            return []
        now = self._clock()
        until = own_time() + self._step_seconds
        objects = self.pause_limit.timed(partial(tracked_objects, _LISTS), "objects")
        lengths: dict[int, int] = {}
        growing: list[Any] = []
        while objects:
            chunk = objects[-_CHUNK:]
            del objects[-_CHUNK:]
            for obj in chunk:
                length = len(obj)
                if length >= _LONG and id(obj) not in elsewhere:
                    lengths[id(obj)] = length
                    before = self._lengths.get(id(obj), ())
                    if len(before) >= 2 and before[-2][1] < before[-1][1] < length:
                        growing.append(obj)
            chunk.clear()
        self._lengths = {
            key: (*self._lengths.get(key, ())[-3:], (now, length)) for key, length in lengths.items()
        }
        growing.sort(key=len, reverse=True)
        del growing[_MOST_LONG:]
        described, self._findings = self._findings, {}
        has_time = True
        while growing:
            obj = growing.pop(0)
            finding = described.get(id(obj))
            if has_time and (finding is None or finding.bytes is None):
                finding = self._describe(obj, elsewhere, {id(growing)}, until)
                has_time = own_time() <= until
            if finding is not None:
                self._findings[id(obj)] = _with_growth(finding, len(obj), self._lengths[id(obj)][0], now)
        findings = list(self._findings.values())
        return [one for one in findings if not any(holder.startswith(_OWN) for holder in one.holders)]

    def _describe(self, obj: Any, elsewhere: set[int], hidden: set[int], until: float) -> Finding:
        sites: list[Site] = []
        holders = tuple(self._holders(obj, hidden, until, sites))
        return Finding(
            kind="container",
            path=" < ".join(holders) or None,
            type=_type_of(obj),
            items=len(obj),
            bytes=_weigh(obj, 2 * _WEIGHING_SECONDS, elsewhere),
            site=sites[0] if sites else None,
            holders=holders or (OUTSIDE,),
            remedy=remedy_for_type(holders),
        )

    def _holders(
        self, obj: Any, hidden: set[int], until: float, sites: list[Site] | None = None
    ) -> Iterator[str]:
        """Yield the holders of an object, the nearest first; after the time `until` only the nearest one.

        Lists of the caller, whose ids are `hidden`, do not count. The current lines of functions and
        generators among the holders are added to `sites`.
        """
        passed = {id(obj), *hidden}
        link = None if identity(type(obj)) in _LISTS else type(obj)
        for depth in range(_DEEPEST):
            began = own_time()
            usable = _usable(referrers(obj), passed) or _usable(referrers_of_tuples(obj), passed)
            ended = own_time()
            self.pause_limit.longest = max(self.pause_limit.longest, ended - began)
            if not usable:
                if not depth and may_have_audit_hooks():
                    yield _UNREAD
                return
            # A link of the same chain leads to the next link, not to the owner.
            previous, obj = obj, min(usable, key=lambda holder: (type(holder) is link, _rank(holder)))
            passed.add(id(obj))  # not the others: one of them may hold this one, too
            usable.clear()
            site = _current_line(obj)
            if site is not None and sites is not None:
                sites.append(site)
            yield _in_words(obj, previous)
            if type(obj) is FrameType or type(obj) is ModuleType or ended > until:
                return


def _with_growth(finding: Finding, items: int, first: tuple[float, int], now: float) -> Finding:
    """The finding with its items of now, and their growth since the first reading: its time and its items."""
    each = (finding.bytes or 0) / max(1, finding.items or 0)
    per_minute = 60 * (items - first[1]) / max(1e-9, now - first[0])
    nbytes = None if finding.bytes is None else round(items * each)
    return replace(
        finding, items=items, bytes=nbytes, items_per_minute=per_minute, bytes_per_minute=per_minute * each
    )


def _name_of(cls: type) -> str:
    """The name of a class; empty for our own, and for those of the interpreter that every program has."""
    layout = layout_of(cls)
    name = "" if layout.name in _PLAIN else qualified_type_name(layout)
    return "" if name.startswith("heapwatch.") or name == _MADE_TO_MEASURE else name


def _newest(listed: list[list[Any]], types: Collection[int]) -> dict[int, list[Any]]:
    """The newest objects of each type, the newest first, of lists in which the oldest come first."""
    newest: dict[int, list[Any]] = {key: [] for key in types}
    lacking = len(newest)
    for obj in chain.from_iterable(map(reversed, reversed(listed))):
        instances = newest.get(identity(type(obj)))  # the program may have changed it meanwhile
        if instances is not None and len(instances) < _WEIGHED:
            instances.append(obj)
            lacking -= len(instances) == _WEIGHED
            if not lacking:
                break
    return newest


def _type_of(container: Any) -> str:
    first = first_items(container, 1, *([dict.values] if type(container) is dict else []))
    return f"{type(container).__name__} of {type_of(first[0] if first else None)}"


def _weigh(obj: Any, seconds: float, elsewhere: set[int], *, one_of_many: bool = False) -> int | None:
    with suppress(OutOfTime, ContainerChanged, RuntimeError):
        return deep_size(obj, budget_seconds=seconds, elsewhere=elsewhere, one_of_many=one_of_many).held_bytes
    return None


def _typical_size(instances: list[Any], anchors: Mapping[int, str]) -> int | None:
    """The bytes of a typical instance, without objects that have another path."""
    own = {anchors[key] for key in map(id, instances) if key in anchors}
    below = tuple(path + sign for path in own for sign in (".", "["))
    elsewhere = {key for key, path in anchors.items() if path not in own and not path.startswith(below)}
    sizes: list[int] = []
    until = own_time() + 2 * _WEIGHING_SECONDS
    for obj in instances:
        # Other instances of its class inside it are counted themselves.
        size = _weigh(obj, _WEIGHING_SECONDS, elsewhere, one_of_many=True)
        sizes += [] if size is None else [size]
        if own_time() > until:
            break
    return sorted(sizes)[len(sizes) // 2] if sizes else None


def _usable(objects: list[Any], passed: set[int]) -> list[Any]:
    return [obj for obj in islice(objects, _MOST_REFERRERS) if id(obj) not in passed and not _is_own(obj)]


def _is_own(obj: Any) -> bool:
    """Whether a referrer is of this package, or an iterator that exists only during the search."""
    code = obj.f_code if type(obj) is FrameType else obj.gi_code if type(obj) is GeneratorType else None
    if code is not None:
        return bool(code.co_filename.startswith(_PACKAGE))
    return type(obj).__name__ in ("list_iterator", "reverse_iterator", "list_reverseiterator")


def _rank(obj: Any) -> int:
    """Sort key of referrers: the most informative ones first."""
    kind = type(obj)
    if kind is ModuleType:
        return 0
    if kind is dict or kind is list:
        return 1
    if kind is FrameType:
        return 3
    return 2


def _in_words(holder: Any, obj: Any) -> str:
    """A holder of an object in words."""
    kind = type(holder)
    if kind is dict:
        items = list(dict.items(holder))
        name = next((key for key, value in items if value is obj and type(key) is str), None)
        return f"dict under {name!r}" if is_shown(name) else "dict"
    if kind is FrameType:
        # Before Python 3.11 a generator refers to its frame, and the frame to the objects.
        what = "generator" if holder.f_code.co_flags & CO_GENERATOR else "frame of"
        return f"{what} {holder.f_code.co_name} ({_where(holder.f_code)})"
    if kind is FunctionType:
        return f"closure or default of {holder.__code__.co_name} ({_where(holder.__code__)})"
    if kind is CellType:
        return "closure"
    if kind is GeneratorType:
        name = getattr(holder.gi_code, "co_qualname", holder.gi_code.co_name)
        return f"generator {name} ({_where(holder.gi_code)})"
    if kind is MethodType:
        return f"method of {qualified_type_name(layout_of(type(holder.__self__)))}"
    if kind is ModuleType:
        return f"module {holder.__dict__.get('__name__')}"
    return qualified_type_name(layout_of(kind))


def _current_line(obj: Any) -> Site | None:
    """The line that a frame or a generator of the user's code is at; None for anything else."""
    frame = obj if type(obj) is FrameType else obj.gi_frame if type(obj) is GeneratorType else None
    if frame is None or frame.f_lineno is None or not is_user_file(frame.f_code.co_filename):
        return None
    return Site(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def _where(code: Any) -> str:
    return f"{code.co_filename.rpartition('/')[2]}:{code.co_firstlineno}"
