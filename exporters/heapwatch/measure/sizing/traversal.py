"""Measures all that an object holds: every byte once, long containers from a sample, within a time budget.

In a container that is too long to visit every item, objects that items share must not be counted for each:

- an object with a single reference belongs to its item;
- one with a few references may be shared with near items (frame stacks, n-step returns): in a few runs of
  items it is seen what each has beside those before it;
- one with many references (a base array under all items, a string used by thousands) counts by the share of
  its references that the sample met: multiplicity weighting, Z. W. Birnbaum and M. G. Sirken, Design of
  Sample Surveys to Estimate the Prevalence of Rare Diseases (1965).

No attribute of a watched object is read: `gc.get_referents` lists what it holds, which runs none of its code
and creates nothing in it.
"""

from __future__ import annotations

import gc
import math
import sys
from collections.abc import Iterable
from types import CodeType, FrameType, FunctionType, GetSetDescriptorType, ModuleType
from typing import Any, Literal

from heapwatch.measure.introspection.exclusive_reads import held_by_ended
from heapwatch.measure.introspection.layout import (
    HAS_GC,
    classes,
    flags_of,
    layout_of,
    own_bytes,
    values_bytes,
)
from heapwatch.measure.introspection.names import type_of
from heapwatch.measure.process.own_time import own_time
from heapwatch.measure.sizing.foreign import (
    Mappings,
    MemoryBlock,
    MemoryPlace,
    Unread,
    exported,
    holds_memory,
    reader_of,
)
from heapwatch.measure.sizing.sampling import (
    CONTAINERS,
    Container,
    ContainerChanged,
    length_of,
    pick,
    positions,
    shuffled,
    variance_of_mean,
)
from heapwatch.measure.sizing.tensor_storage import (
    Storages,
    array_data,
    array_holds,
    array_items,
    array_view,
    owned_bytes,
    storage_memory,
    tensor_parts,
)

_BEFORE = 4  # items before an item that may share objects with it: a frame stack of 4
_RUNS, _COMPARED = 2, 8  # runs of neighbours that are compared, if items may share objects, and their length
_FEW_REFERENCES = 8
FEWEST_SAMPLES = 8  # of a container inside an item, and when the time runs out
_WANTED_ERROR = 0.01  # relative standard error from which more samples are taken
_MOST_TIMES = 32  # most samples, as a multiple of the usual number
_SMALL = 512  # bytes of a string or number up to which sharing between neighbours is ignored

# How an object is looked into. Names, not an Enum: they are compared for each object.
Kind = Literal[
    "atom", "opaque", "function", "container", "array", "tensor", "storage", "memory", "unread", "foreign",
    "native", "object", "frame",
]  # fmt: skip

_OPAQUE = (type, ModuleType, CodeType, GetSetDescriptorType)
_KNOWN_LIBRARIES = ("torch", "tensordict", "torchao", "torchrl")


class OutOfTime(RuntimeError):
    """The object could not be measured within its time budget."""


class Tally:
    """Bytes by place; for those on the heap variance, slack and the number of unread objects."""

    __slots__ = ("held", "slack", "unread", "variance")

    def __init__(self) -> None:
        self.held: dict[MemoryPlace, float] = {"heap": 0.0}
        self.variance = 0.0
        self.slack = 0.0
        self.unread = 0.0

    def total(self) -> float:
        """Bytes in all places."""
        return sum(self.held.values())

    def add(self, other: Tally, weight: float = 1.0) -> None:
        """Add what another holds, `weight` times."""
        for place, held in other.held.items():
            self.held[place] = self.held.get(place, 0.0) + weight * held
        self.variance += weight * weight * other.variance
        self.slack += weight * other.slack
        self.unread += weight * other.unread


class Walk:
    """One measurement: the objects counted so far, and the time left."""

    def __init__(
        self,
        samples: int,
        budget_seconds: float,
        elsewhere: Iterable[int] = (),
        storages: Storages | None = None,
    ) -> None:
        self.objects = 0
        self._storages = storages or Storages()
        self._samples = samples
        self._budget = budget_seconds
        self._deadline = own_time() + budget_seconds  # waiting for a busy machine does not count
        self._counted: set[int] = set(elsewhere)  # ids of objects and addresses of arrays' memory
        self._kinds: dict[int, Kind] = {}  # by the id of a class: a metaclass may define a hash
        self._mappings = Mappings()
        self._kept: list[Any] = []  # objects made on the way, so that no other takes their id meanwhile

    def everything(self, stack: list[Any], samples: int) -> tuple[Tally, int]:
        """Size of all that `stack` reaches, and how many references to its first object were found."""
        tally, home = Tally(), _key(stack[0])
        self._counted.discard(home)
        return tally, self._count_all(stack, tally, samples, home)

    def has_counted(self, obj: Any) -> bool:
        """Whether an object is counted already, or was to be left out."""
        return _key(obj) in self._counted

    def one_of_many(self, obj: Any, samples: int) -> Tally:
        """Size of all that `obj` reaches without passing another object of its class."""
        tally = Tally()
        stack: list[Any] = []
        self._counted.add(_key(obj))
        self._visit(obj, self._counted, tally, stack, samples)
        self._kinds[id(type(obj))] = "opaque"
        self._count_all(stack, tally, samples)
        return tally

    def _count_all(self, stack: list[Any], tally: Tally, samples: int, home: int = 0) -> int:
        """Add all that `stack` reaches, and return how many references to the object `home` were found."""
        counted, back = self._counted, 0
        while stack:
            obj = stack.pop()
            key = _key(obj)
            if key in counted:
                back += key == home
                continue
            counted.add(key)
            self._visit(obj, counted, tally, stack, samples)
        return back

    def _visit(self, obj: Any, counted: set[int], tally: Tally, stack: list[Any], samples: int) -> None:
        """Add one object to `tally`, and put what it holds on `stack`."""
        self._count_one()
        cls = type(obj)
        kind = self._kinds.get(id(cls)) or self._kind(cls)
        if kind == "opaque":
            return
        if kind == "memory":
            tally.held[obj.place] = tally.held.get(obj.place, 0.0) + obj.nbytes
            tally.slack += obj.slack
            return
        if kind == "unread":
            tally.unread += 1
            return
        # `__sizeof__` of a library's objects may include what they hold.
        own = object.__sizeof__(obj) if kind == "foreign" else own_bytes(obj, cls)
        if kind == "container" and length_of(obj) > self._samples:
            tally.add(self._estimate(obj, samples))
        elif kind != "atom":
            parts = self._parts(obj, cls, kind)
            stack += parts
            if kind == "array":
                own -= owned_bytes(obj)
                key, size = array_data(obj)
                if size and key not in counted and key not in self._counted:
                    counted.add(key)
                    tally.held["heap"] += size
            elif kind == "object":
                own += values_bytes(cls, parts)
        tally.held["heap"] += own

    def _parts(self, obj: Any, cls: type, kind: Kind) -> list[Any]:
        """The objects and blocks of memory that an object holds."""
        if kind == "container" or kind == "object":
            return gc.get_referents(obj)
        if kind == "array":
            parts = array_holds(obj)
            if parts and self._kind(type(parts[0])) == "native":
                parts += self._make([array_view(obj)])
            parts = parts or self._make(array_items(obj))
            # a subclass has attributes of its own
            return parts + gc.get_referents(obj) if flags_of(cls) & HAS_GC else parts
        if kind == "tensor":
            return self._make(tensor_parts(obj, self._storages)) + gc.get_referents(obj)
        if kind == "storage":
            return self._make([storage_memory(obj)])
        if kind == "foreign":
            reader = reader_of(layout_of(cls).mro)
            return [] if reader is None else self._make(list(reader(obj, self._mappings)))
        if kind == "native":
            mro = layout_of(cls).mro
            return gc.get_referents(obj) + self._make(list(exported(obj, mro)))
        if kind == "frame":
            return held_by_ended(obj)
        if kind == "function":
            return [obj.__closure__, obj.__defaults__, obj.__kwdefaults__, obj.__dict__]
        return []

    def _count_one(self) -> None:
        self.objects += 1
        if not self.objects & 127 and own_time() > self._deadline:
            raise OutOfTime(f"more than {self.objects} objects do not fit in {self._budget} s")

    def _kind(self, cls: type) -> Kind:
        kind = self._kinds[id(cls)] = kind_of(cls)
        return kind

    def _make(self, parts: list[Any]) -> list[Any]:
        self._kept += parts
        return parts

    def _estimate(self, container: Container, samples: int) -> Tally:
        """What the items of a long container hold, from a sample of them."""
        usual = samples == self._samples
        before = self._counted.copy() if usual else set()
        total, error = self._sampled(container, samples)
        # Items of very different sizes need more samples; a nested container keeps the usual number.
        if usual and error > _WANTED_ERROR:
            times = min((error / _WANTED_ERROR) ** 2, _MOST_TIMES)
            total = self._resampled(container, math.ceil(samples * times), before) or total
        return total

    def _resampled(self, container: Container, samples: int, before: set[int]) -> Tally | None:
        """The estimate from a new sample, without the counts of the first; None when time ran out."""
        first = self._counted - before
        self._counted -= first
        try:
            return self._sampled(container, min(length_of(container), samples))[0]
        except OutOfTime:
            self._counted |= first
            return None

    def _sampled(self, container: Container, samples: int) -> tuple[Tally, float]:
        """The estimate from one sample, and its standard error as a share of it."""
        length = length_of(container)
        if not length:  # emptied by another thread
            raise ContainerChanged(f"a {type_of(container)} was emptied while it was read")
        wanted = positions(length, samples)
        items = pick(container, wanted)
        shared: dict[int, list[Any]] = {}
        seen: dict[int, Tally] = {}
        may_share = False
        until = own_time() + (self._deadline - own_time()) / 2
        for index in shuffled(len(items)):
            seen[index], shares = self._reach(items[index], shared, set())
            may_share |= shares
            if own_time() > until and len(seen) >= FEWEST_SAMPLES:
                break
        items.clear()
        tallies = [seen[index] for index in sorted(seen)]
        own = self._own_share(container) if may_share else 1.0
        scale = length * own / len(tallies)
        total = Tally()
        for tally in tallies:
            total.add(tally, scale)
        on_heap = [tally.held["heap"] for tally in tallies]
        total.variance += (length * own) ** 2 * variance_of_mean(on_heap, length)
        error = math.sqrt(total.variance) / max(total.held["heap"], 1.0)
        self._add_shared(total, shared, length / len(tallies))
        return total, error

    def _reach(self, stack: list[Any], shared: dict[int, list[Any]], reached: set[int]) -> tuple[Tally, bool]:
        """Size of what `stack` reaches beyond what is `reached`, and whether other items may share it.

        Objects with many references go into `shared`, with the number of references to them that were met.
        """
        tally, kinds = Tally(), self._kinds
        seen: dict[int, int] = {}
        several: list[Any] = []
        while stack:
            obj = stack.pop()
            key = _key(obj)
            if key in reached:
                if key in seen:
                    seen[key] += 1
                continue
            if key in self._counted:
                continue
            references = _references(obj)
            cls = type(obj)
            kind = kinds.get(id(cls)) or self._kind(cls)
            if references > _FEW_REFERENCES:
                if kind != "opaque":
                    shared.setdefault(key, [obj, 0])[1] += 1
                continue
            reached.add(key)
            if kind == "atom" and (size := own_bytes(obj, cls)) <= _SMALL:
                self.objects += 1
                tally.held["heap"] += size
                continue
            if references > 1:
                seen[key] = 1
                several.append(obj)
            self._visit(obj, reached, tally, stack, FEWEST_SAMPLES)
        may_share = False
        while several and not may_share:
            obj = several.pop()
            may_share = _references(obj) > seen[_key(obj)]
        return tally, may_share

    def _own_share(self, container: Container) -> float:
        """The share of the bytes of items that remains if what neighbours share counts once.

        In a few runs of neighbours each item is measured alone, and without what those before it hold.
        """
        length = length_of(container)
        size = min(length, _BEFORE + _COMPARED)
        alone = apart = 0.0
        for start in sorted({round(part * (length - size) / (_RUNS + 1)) for part in range(1, _RUNS + 1)}):
            reached: set[int] = set()
            for number, item in enumerate(pick(container, range(start, start + size))):
                added = self._reach(item.copy(), {}, reached)[0].total()
                if number >= _BEFORE:
                    apart += added
                    alone += self._reach(item, {}, set())[0].total()
        return apart / alone if alone else 1.0

    def _add_shared(self, total: Tally, shared: dict[int, list[Any]], scale: float) -> None:
        """Add objects with many references, by the share of these references that the sample represents."""
        while shared:
            key, (obj, seen) = shared.popitem()
            if key in self._counted:
                continue
            references = _references(obj)
            held, back = self.everything([obj], FEWEST_SAMPLES)
            outside = references - back
            total.add(held, scale * seen / outside if outside > _FEW_REFERENCES else scale * seen)


def kind_of(cls: type) -> Kind:
    """How instances of `cls` are inspected."""
    if cls is MemoryBlock:
        return "memory"
    if cls is Unread:
        return "unread"
    if issubclass(cls, _OPAQUE):
        return "opaque"
    if cls is FunctionType:
        return "function"
    if cls is FrameType:
        return "frame"
    if issubclass(cls, CONTAINERS):
        return "container"
    layout = layout_of(cls)
    if layout.kind == "array":
        return "array"
    # A class of the program's own sees all that its tensors are asked.
    if layout.kind == "tensor" and layout.module.partition(".")[0] in _KNOWN_LIBRARIES:
        return "tensor"
    if issubclass(cls, classes("torch", "UntypedStorage")):
        return "storage"
    if layout.kind not in ("atom", "text", "raw") and reader_of(layout.mro) is not None:
        return "foreign"
    if layout.kind in ("object", "tensor", "programs") and holds_memory(layout):
        return "native"
    return "object" if flags_of(cls) & HAS_GC or layout_of(cls).sizer == "python" else "atom"


def _key(obj: Any) -> int:
    """The key under which an object is counted: its id, or the address of its memory."""
    return int(obj.address) if type(obj) is MemoryBlock else id(obj)


def _references(obj: Any) -> int:
    """References to an object, without the one variable in which the caller holds it."""
    return obj.references if type(obj) is MemoryBlock else sys.getrefcount(obj) - _held


def _measure_held() -> int:
    stack = [object()]
    obj = stack.pop()
    return _references(obj)


_held = 0
_held = _measure_held()
