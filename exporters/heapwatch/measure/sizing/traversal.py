"""Measures the deep size of an object: each byte once, long containers by a sample, in a time budget.

In a container that is too long to visit every item, what items share must not count once for each item:

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
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FrameType, FunctionType, GetSetDescriptorType, ModuleType
from typing import Any, Literal, NamedTuple

from heapwatch.measure.introspection.frames import held_by_ended
from heapwatch.measure.introspection.instance_values import values_bytes
from heapwatch.measure.introspection.layout import (
    HAS_GC,
    flags_of,
    layout_of,
    own_bytes,
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
    random_order,
    random_position_in_each,
    variance_of_mean,
)
from heapwatch.measure.sizing.tensor_storage import (
    Storages,
    array_base,
    array_memory,
    owned_bytes,
    tensor_parts,
)

_BEFORE = 4  # items before an item that may share objects with it: a frame stack of 4
_RUNS, _COMPARED = 2, 8  # runs of neighbours that are compared, if items may share objects, and their length
_SAMPLES_A_RUN = 16  # of a larger sample
_FEW_REFERENCES = 8
FEWEST_SAMPLES = 8  # of a container inside an item, and when the time runs out
_WANTED_ERROR = 0.01  # relative standard error from which more samples are taken
SURE = 3  # standard errors by which an estimate may be off
_MOST_TIMES = 32  # most samples, as a multiple of the usual number
_SMALL = 512  # bytes of a string or number up to which sharing between neighbours is ignored

# How to inspect an object. Strings, not an Enum: they are compared for each object.
Kind = Literal[
    "atom", "opaque", "function", "container", "array", "tensor", "memory", "unread", "foreign",
    "native", "object", "frame",
]  # fmt: skip

_OPAQUE = (type, ModuleType, CodeType, GetSetDescriptorType)
_KNOWN_LIBRARIES = ("torch", "tensordict", "torchao", "torchrl")


class OutOfTime(RuntimeError):
    """The object could not be measured within its time budget."""


class _OwnShare(NamedTuple):
    """The share of the bytes of items that no neighbour has as well.

    `error` is its standard error, `excess` how much of it items further away may have, too.
    """

    share: float
    error: float
    excess: float


_ALL_OWN = _OwnShare(1.0, 0.0, 0.0)


class Tally:
    """Bytes by place; of the heap also the variance, bytes that may count twice, and unread objects."""

    __slots__ = ("bytes_by_place", "slack", "unread", "variance")

    def __init__(self) -> None:
        self.bytes_by_place: dict[MemoryPlace, float] = {"heap": 0.0}
        self.variance = 0.0
        self.slack = 0.0
        self.unread = 0.0

    def total(self) -> float:
        """Bytes in all places."""
        return sum(self.bytes_by_place.values())

    def add(self, other: Tally, weight: float = 1.0) -> None:
        """Add what another holds, `weight` times."""
        for place, nbytes in other.bytes_by_place.items():
            self.bytes_by_place[place] = self.bytes_by_place.get(place, 0.0) + weight * nbytes
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
        self._created: list[Any] = []  # objects made on the way, so that no other takes their id meanwhile

    def everything(self, stack: list[Any], samples: int) -> tuple[Tally, int]:
        """Size of all that `stack` reaches, and how many references to its first object were found."""
        tally, measured_key = Tally(), _key(stack[0])
        self._counted.discard(measured_key)
        return tally, self._count_all(stack, tally, samples, measured_key)

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

    def _count_all(self, stack: list[Any], tally: Tally, samples: int, measured_key: int = 0) -> int:
        """Add all that `stack` reaches, and return the number of references to `measured_key`."""
        counted, references_back = self._counted, 0
        while stack:
            obj = stack.pop()
            key = _key(obj)
            if key in counted:
                references_back += key == measured_key
                continue
            counted.add(key)
            self._visit(obj, counted, tally, stack, samples)
        return references_back

    def _visit(self, obj: Any, counted: set[int], tally: Tally, stack: list[Any], samples: int) -> None:
        """Add one object to `tally`, and put what it holds on `stack`."""
        self._count_one()
        cls = type(obj)
        kind = self._kinds.get(id(cls)) or self._kind(cls)
        if kind == "opaque":
            return
        if kind == "memory":
            tally.bytes_by_place[obj.place] = tally.bytes_by_place.get(obj.place, 0.0) + obj.nbytes
            tally.slack += obj.slack
            return
        if kind == "unread":
            tally.unread += 1
            return
        # `__sizeof__` of a library's objects may include what they hold.
        nbytes = object.__sizeof__(obj) if kind == "foreign" else own_bytes(obj, cls)
        if kind == "container" and length_of(obj) > self._samples:
            tally.add(self._estimate(obj, samples))
        elif kind != "atom":
            parts = self._parts(obj, cls, kind)
            stack += parts
            if kind == "array":
                nbytes -= owned_bytes(obj)  # which is among the parts
            elif kind == "object":
                nbytes += values_bytes(cls, parts)
        tally.bytes_by_place["heap"] += nbytes

    def _parts(self, obj: Any, cls: type, kind: Kind) -> list[Any]:
        """The objects and blocks of memory that an object holds."""
        if kind == "container" or kind == "object":
            return gc.get_referents(obj)
        if kind == "array":
            base = array_base(obj)
            parts = [] if base is None else [base]
            # How much memory an object of C code has is not known, but how much the array shows of it.
            if base is None or self._kind(type(base)) == "native":
                parts += self._make(array_memory(obj))
            # a subclass has attributes of its own
            return parts + gc.get_referents(obj) if flags_of(cls) & HAS_GC else parts
        if kind == "tensor":
            return self._make(tensor_parts(obj, self._storages)) + gc.get_referents(obj)
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
        self._created += parts
        return parts

    def _estimate(self, container: Container, samples: int) -> Tally:
        """Estimate the bytes of the items of a long container from a sample."""
        usual = samples == self._samples
        earlier = self._counted.copy() if usual else set()
        total, variance = self._sampled(container, samples)
        error = math.sqrt(variance) / max(total.bytes_by_place["heap"], 1.0)
        # Items of very different sizes need more samples; a nested container keeps the usual number.
        if usual and error > _WANTED_ERROR:
            times = min((error / _WANTED_ERROR) ** 2, _MOST_TIMES)
            larger = min(math.ceil(samples * times), length_of(container))
            total = self._again(lambda: self._larger(container, larger), earlier) or total
        return total

    def _again(self, measure: Callable[[], Tally], earlier: set[int]) -> Tally | None:
        """Repeat a measurement in half of the remaining time; None, with the counts restored, on timeout."""
        recent, deadline = self._counted - earlier, self._deadline
        self._counted -= recent
        self._deadline -= (deadline - own_time()) / 2
        try:
            return measure()
        except OutOfTime:
            self._counted &= earlier
            self._counted |= recent
            return None
        finally:
            self._deadline = deadline

    def _larger(self, container: Container, samples: int) -> Tally:
        """Measure as many items; all of them one after the other, without an estimate."""
        if samples < length_of(container):
            return self._sampled(container, samples)[0]
        tally = Tally()
        self._count_all(gc.get_referents(container), tally, FEWEST_SAMPLES)
        return tally

    def _sampled(self, container: Container, samples: int) -> tuple[Tally, float]:
        """The estimate from one sample, and the variance by which it is decided whether to take a larger one.

        What items share is no part of that: it takes many times as many.
        """
        length = length_of(container)
        if not length:  # emptied by another thread
            raise ContainerChanged(f"a {type_of(container)} was emptied while it was read")
        sampled = positions(length, samples)
        items = pick(container, sampled)
        shared: dict[int, Any] = {}
        references_met: dict[int, dict[int, int]] = {}
        tally_by_index: dict[int, Tally] = {}
        may_share = False
        deadline = own_time() + (self._deadline - own_time()) / 2
        for index in random_order(len(items)):
            tally_by_index[index], few_references, references_met[index] = self._reach(
                items[index], shared, set()
            )
            may_share = may_share or _have_others(few_references)
            few_references.clear()
            if own_time() > deadline and len(tally_by_index) >= FEWEST_SAMPLES:
                break
        items.clear()
        order = sorted(tally_by_index)
        tallies = [tally_by_index[index] for index in order]
        own_share = self._own_share(container, samples) if may_share else _ALL_OWN
        scale = length / len(tallies)
        total = Tally()
        for tally in tallies:
            total.add(tally, scale * own_share.share)
        of_items = total.bytes_by_place["heap"]
        counts = Counter[int]()
        for index in order:
            counts.update(references_met[index])
        values = self._add_shared(total, shared, counts, scale)
        alone = [own_share.share * tally.bytes_by_place["heap"] for tally in tallies]
        item_bytes = [
            nbytes + sum(count * values.get(key, 0.0) for key, count in references_met[index].items())
            for index, nbytes in zip(order, alone, strict=True)
        ]
        variance = (
            length**2 * variance_of_mean(item_bytes, length)
            + (own_share.error * of_items / own_share.share) ** 2
        )
        total.slack += own_share.excess * of_items / own_share.share
        # One more item might be unlike all that were seen.
        unlike = total.bytes_by_place["heap"] * (1 - len(order) / length) / (len(order) * SURE)
        total.variance += variance + unlike**2
        return total, length**2 * variance_of_mean(alone, length)

    def _reach(
        self, stack: list[Any], shared: dict[int, Any], reached: set[int]
    ) -> tuple[Tally, dict[int, list[Any]], dict[int, int]]:
        """Size of the objects reachable from `stack` and not in `reached`.

        The second result has objects with few references, which other items may share, with the number of
        references met. Objects with many go into `shared`; the third counts the references met to each.
        """
        tally, kinds = Tally(), self._kinds
        references_met: dict[int, int] = {}
        few_references: dict[int, list[Any]] = {}
        while stack:
            obj = stack.pop()
            key = _key(obj)
            if key in reached:
                if key in few_references:
                    few_references[key][1] += 1
                continue
            if key in self._counted:
                continue
            references = _references(obj)
            cls = type(obj)
            kind = kinds.get(id(cls)) or self._kind(cls)
            if references > _FEW_REFERENCES:
                if kind != "opaque":
                    shared.setdefault(key, obj)
                    references_met[key] = references_met.get(key, 0) + 1
                continue
            reached.add(key)
            if kind == "atom" and (size := own_bytes(obj, cls)) <= _SMALL:
                self.objects += 1
                tally.bytes_by_place["heap"] += size
                continue
            if references > 1:
                few_references[key] = [obj, 1]
            self._visit(obj, reached, tally, stack, FEWEST_SAMPLES)
        return tally, few_references, references_met

    def _bytes_of_others(self, few_references: dict[int, list[Any]]) -> float:
        """The bytes of these objects that belong to references that were not met; empties the dict."""
        nbytes = 0.0
        while few_references:
            obj, times = few_references.popitem()[1]
            if (share := 1 - times / max(1, _references(obj))) > 0:  # the program may have dropped it
                nbytes += share * self._reach([obj], {}, set())[0].total()
        return nbytes

    def _own_share(self, container: Container, samples: int) -> _OwnShare:
        """The share of the bytes of items that remains if what neighbours share counts once.

        In a few runs of neighbours each item is measured alone, and without what those before it hold.
        """
        length = length_of(container)
        size = min(length, _BEFORE + _COMPARED)
        deadline = own_time() + (self._deadline - own_time()) / 2
        starts = random_position_in_each(length - size + 1, max(_RUNS, samples // _SAMPLES_A_RUN))
        compared: list[tuple[float, float]] = []
        spare = 0.0
        for run in random_order(len(starts)):
            reached: set[int] = set()
            for number, item in enumerate(pick(container, range(starts[run], starts[run] + size))):
                extra = self._reach(item.copy(), {}, reached)[0].total()
                if number >= _BEFORE:
                    alone, few_references, _ = self._reach(item, {}, set())
                    compared.append((extra, alone.total()))
                    spare += min(self._bytes_of_others(few_references), alone.total())
            if own_time() > deadline and len(compared) > _COMPARED:
                break
        whole = sum(alone for _, alone in compared)
        if not whole:
            return _ALL_OWN
        share = sum(extra for extra, _ in compared) / whole
        mean, count = whole / len(compared), len(compared)
        # As if one more had been seen that is unlike the others.
        squares = sum((extra - share * alone) ** 2 for extra, alone in compared)
        squares += (mean * max(share, 1 - share)) ** 2
        error = math.sqrt(squares / (count * (count + 1))) / mean
        return _OwnShare(max(share, 1e-9), error, max(0.0, share - 1 + spare / whole))

    def _add_shared(
        self, total: Tally, shared: dict[int, Any], references_met: Mapping[int, int], scale: float
    ) -> dict[int, float]:
        """Add objects with many references, by the share of these references that the sample represents.

        Returns the bytes on the heap that stand for one reference to each.
        """
        values = {}
        while shared:
            key, obj = shared.popitem()
            if key in self._counted:
                continue
            references = _references(obj)
            tally, references_back = self.everything([obj], FEWEST_SAMPLES)
            outside = references - references_back
            part = 1 / outside if outside > _FEW_REFERENCES else 1.0
            values[key] = tally.bytes_by_place["heap"] * part
            total.add(tally, scale * references_met[key] * part)
        return values


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
    # A tensor class of the program could run its own code when it is read (`__torch_function__`).
    if layout.kind == "tensor" and layout.module.partition(".")[0] in _KNOWN_LIBRARIES:
        return "tensor"
    if layout.kind not in ("atom", "text", "raw") and reader_of(layout.mro) is not None:
        return "foreign"
    if layout.kind in ("object", "tensor", "programs") and holds_memory(layout):
        return "native"
    return "object" if flags_of(cls) & HAS_GC or not layout.is_plainly_sized else "atom"


def _key(obj: Any) -> int:
    """The key under which an object is counted: its id, or the address of its memory."""
    return int(obj.address) if type(obj) is MemoryBlock else id(obj)


def _references(obj: Any) -> int:
    """References to an object, without the one variable in which the caller holds it."""
    return obj.references if type(obj) is MemoryBlock else sys.getrefcount(obj) - _call_references


def _have_others(few_references: dict[int, list[Any]]) -> bool:
    """Whether one of these objects has references that were not met; removes the objects that it checks."""
    while few_references:
        obj, times = few_references.popitem()[1]
        if _references(obj) > times:
            return True
    return False


def _count_call_references() -> int:
    stack = [object()]
    obj = stack.pop()
    return _references(obj)


_call_references = 0
_call_references = _count_call_references()
