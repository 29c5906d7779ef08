"""Deep size of live objects: every byte once, big containers from a sample, within a time budget.

Memory shared inside the measured object is counted once: views with their base, a `next_state` with the
`state` of the following item, constants with their other holders. In a container too long to be walked, three
observations keep the estimate from multiplying what is shared:

- an object with a single reference belongs to its item alone;
- one with a few may be shared with near items (frame stacks, n-step returns): it is divided among the
  references that are found there;
- one with many references (a base array under all items, a string used by thousands) is charged by the share
  of its references that the sample met: multiplicity weighting, Z. W. Birnbaum and M. G. Sirken, Design of
  Sample Surveys to Estimate the Prevalence of Rare Diseases (1965).

Attributes are not read from watched objects: what they hold comes from the garbage collector's own view of
them, which runs none of their code and creates nothing in them.
"""

from __future__ import annotations

import gc
import math
import sys
import time
from dataclasses import dataclass
from enum import Enum, auto
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, GetSetDescriptorType, ModuleType
from typing import Any

from heapwatch.storages import (
    Place,
    TensorMemory,
    array_data,
    array_holds,
    array_items,
    classes,
    storage_memory,
    tensor_parts,
)
from heapwatch.strata import CONTAINERS, Container, around, pick, positions, spread, variance_of_mean

SAMPLES = 64
BUDGET_SECONDS = 0.05

_NEIGHBOURS = 4  # items before and after one that may share with it: a frame stack of 4, a 3-step return
_RESOLVED = 4  # sampled items whose neighbours are looked at, when sharing is possible at all
_FEW_REFERENCES = 8
_FEWEST_SAMPLES = 8  # of a container inside an item, and where the time budget ends
_WANTED_ERROR = 0.01  # relative standard error from which more samples are taken
_MOST_TIMES = 16  # the usual samples, at most
_SMALL = 512  # bytes of a string or number whose sharing between neighbours is not worth a look

_GC_HEADER = 16
_HAS_GC = 1 << 14  # CPython's Py_TPFLAGS_HAVE_GC
_MANAGED_DICT = 1 << 4  # Py_TPFLAGS_MANAGED_DICT, CPython 3.11 and later
_VALUES_APART = (3, 11) <= sys.version_info < (3, 13)


class OutOfTime(RuntimeError):
    """The object could not be measured within its time budget."""


@dataclass(frozen=True)
class Size:
    """Deep size of an object.

    `bytes` is on the heap of this process; `gpu_bytes` is on an accelerator, `mapped_bytes` in file-backed
    pages, `shared_bytes` in memory shared with other processes. `error_bytes` is the standard error of
    `bytes`: 0 when every object was visited. `objects` were looked at.
    """

    bytes: int
    error_bytes: int = 0
    gpu_bytes: int = 0
    mapped_bytes: int = 0
    shared_bytes: int = 0
    objects: int = 0

    def times(self, share: float) -> Size:
        """The size of a part, or of a multiple, of the object."""
        return Size(
            bytes=round(share * self.bytes),
            error_bytes=round(share * self.error_bytes),
            gpu_bytes=round(share * self.gpu_bytes),
            mapped_bytes=round(share * self.mapped_bytes),
            shared_bytes=round(share * self.shared_bytes),
            objects=self.objects,
        )


def deep_size(obj: object, *, samples: int = SAMPLES, budget_seconds: float = BUDGET_SECONDS) -> Size:
    """Bytes that `obj` and everything reachable from it hold, each counted once.

    Classes, modules, functions' globals and frames are not followed. A container of more than `samples` items
    is estimated from that many, drawn from strata over its length; from up to 16 times as many when they
    differ so much that the standard error is above 1 %.

    Raises:
        ContainerChanged: another thread kept changing a container while it was read.
        OutOfTime: what must be walked object by object did not fit in the budget.
        ValueError: `samples` is below 8, or the budget is not positive.

    """
    if samples < _FEWEST_SAMPLES:
        raise ValueError(f"samples is {samples}, allowed is {_FEWEST_SAMPLES} or more")
    if not budget_seconds > 0:
        raise ValueError(f"budget_seconds is {budget_seconds}, allowed is more than 0")
    walk = _Walk(samples, budget_seconds)
    tally, _ = walk.everything([obj], samples)
    held = {place: round(held) for place, held in tally.held.items()}
    return Size(
        bytes=held["heap"],
        error_bytes=math.ceil(math.sqrt(tally.variance)),
        gpu_bytes=held.get("gpu", 0),
        mapped_bytes=held.get("mapped", 0),
        shared_bytes=held.get("shared", 0),
        objects=walk.objects,
    )


class _Kind(Enum):
    ATOM = auto()
    OPAQUE = auto()
    FUNCTION = auto()
    CONTAINER = auto()
    ARRAY = auto()
    TENSOR = auto()
    STORAGE = auto()
    MEMORY = auto()
    OBJECT = auto()


_ATOMS = (int, float, complex, str, bytes, bytearray, type(None), type(Ellipsis), range)
_OPAQUE = (type, ModuleType, CodeType, FrameType, BuiltinFunctionType, GetSetDescriptorType)


def _kind_of(cls: type) -> _Kind:
    if cls is TensorMemory:
        return _Kind.MEMORY
    if issubclass(cls, _OPAQUE):
        return _Kind.OPAQUE
    if cls is FunctionType:
        return _Kind.FUNCTION
    if issubclass(cls, CONTAINERS):
        return _Kind.CONTAINER
    if issubclass(cls, classes("numpy", "ndarray")):
        return _Kind.ARRAY
    if issubclass(cls, classes("torch", "Tensor")):
        return _Kind.TENSOR
    if issubclass(cls, classes("torch", "UntypedStorage")):
        return _Kind.STORAGE
    if issubclass(cls, _ATOMS) and not cls.__flags__ & _HAS_GC:
        return _Kind.ATOM
    return _Kind.OBJECT if cls.__flags__ & _HAS_GC else _Kind.ATOM


def _own_bytes(obj: object, cls: type) -> int:
    """Bytes of one object without what it refers to; a `__sizeof__` written in Python is not run."""
    if type(cls.__sizeof__) is FunctionType:
        return object.__sizeof__(obj) + _GC_HEADER
    return sys.getsizeof(obj)


class _Tally:
    """Bytes by place, and the variance of those on the heap."""

    __slots__ = ("held", "variance")

    def __init__(self) -> None:
        self.held: dict[Place, float] = {"heap": 0.0}
        self.variance = 0.0

    def add(self, other: _Tally, weight: float = 1.0) -> None:
        for place, held in other.held.items():
            self.held[place] = self.held.get(place, 0.0) + weight * held
        self.variance += weight * weight * other.variance


class _Walk:
    """One measurement: what was counted, and what time is left."""

    def __init__(self, samples: int, budget_seconds: float) -> None:
        self.objects = 0
        self._samples = samples
        self._budget = budget_seconds
        self._deadline = time.thread_time() + budget_seconds  # waiting for a busy machine does not count
        self._counted: set[int] = set()  # ids of objects and addresses of arrays' memory
        self._kinds: dict[type, _Kind] = {}
        self._kept: list[Any] = []  # objects made on the way, so that no other takes their id meanwhile

    def everything(self, stack: list[Any], samples: int) -> tuple[_Tally, int]:
        """Size of all that is reachable from `stack`, and the references found back to its first object."""
        tally, counted = _Tally(), self._counted
        home, back = _key(stack[0]), 0
        while stack:
            obj = stack.pop()
            key = _key(obj)
            if key in counted:
                back += key == home
                continue
            counted.add(key)
            self._visit(obj, counted, tally, stack, samples)
        return tally, back

    def _visit(self, obj: Any, counted: set[int], tally: _Tally, stack: list[Any], samples: int) -> None:
        """Charge one object to `tally` and put what it holds on `stack`."""
        self.objects += 1
        if not self.objects & 127 and time.thread_time() > self._deadline:
            raise OutOfTime(f"more than {self.objects} objects do not fit in {self._budget} s")
        cls = type(obj)
        kind = self._kind(cls)
        if kind is _Kind.ATOM:
            tally.held["heap"] += _own_bytes(obj, cls)
            return
        if kind is _Kind.OPAQUE:
            return
        if kind is _Kind.MEMORY:
            tally.held[obj.place] = tally.held.get(obj.place, 0.0) + obj.nbytes
            return
        own = _own_bytes(obj, cls)
        if kind is _Kind.CONTAINER:
            if len(obj) > self._samples:
                tally.add(self._estimate(obj, samples))
            else:
                stack += gc.get_referents(obj)
        elif kind is _Kind.OBJECT:
            parts = gc.get_referents(obj)
            own += _values_bytes(cls, parts)
            stack += parts
        elif kind is _Kind.ARRAY:
            key, size, place = array_data(obj)
            own -= obj.nbytes if obj.flags.owndata else 0
            self._charge(key, size, place, counted, tally)
            stack += array_holds(obj)
            self._make(array_items(obj), stack)
            if cls.__flags__ & _HAS_GC:  # a subclass, with attributes of its own
                stack += gc.get_referents(obj)
        elif kind is _Kind.TENSOR:
            self._make(tensor_parts(obj), stack)
            stack += gc.get_referents(obj)
        elif kind is _Kind.STORAGE:
            self._make([storage_memory(obj)], stack)
        elif kind is _Kind.FUNCTION:
            stack += [obj.__closure__, obj.__defaults__, obj.__kwdefaults__, obj.__dict__]
        tally.held["heap"] += own

    def _kind(self, cls: type) -> _Kind:
        kind = self._kinds.get(cls)
        if kind is None:
            kind = self._kinds[cls] = _kind_of(cls)
        return kind

    def _make(self, parts: list[Any], stack: list[Any]) -> None:
        self._kept += parts
        stack += parts

    def _charge(self, key: int, size: int, place: Place, counted: set[int], tally: _Tally) -> None:
        if size and key not in counted and key not in self._counted:
            counted.add(key)
            tally.held[place] = tally.held.get(place, 0.0) + size

    def _estimate(self, container: Container, samples: int) -> _Tally:
        """What the items of a long container hold, from a sample of them."""
        total, error = self._sampled(container, samples)
        # Items of very different sizes need more of them; a nested container is but one item.
        if samples == self._samples and error > _WANTED_ERROR:
            times = min((error / _WANTED_ERROR) ** 2, _MOST_TIMES)
            total, _ = self._sampled(container, min(len(container), math.ceil(samples * times)))
        return total

    def _sampled(self, container: Container, samples: int) -> tuple[_Tally, float]:
        """The estimate from one sample, and its standard error as a share of it."""
        length = len(container)
        wanted = positions(length, samples)
        items = pick(container, wanted)
        shared: dict[int, list[Any]] = {}
        seen: dict[int, _Tally] = {}
        doubtful = False
        until = time.thread_time() + (self._deadline - time.thread_time()) / 2
        for index in spread(len(items)):
            seen[index], doubts = self._reach(items[index], set(), {}, shared)
            doubtful |= doubts
            if time.thread_time() > until and len(seen) >= _FEWEST_SAMPLES:
                break
        items.clear()
        tallies = [seen[index] for index in sorted(seen)]
        own = self._own_share(container, wanted) if doubtful else 1.0
        scale = length * own / len(tallies)
        total = _Tally()
        for tally in tallies:
            total.add(tally, scale)
        on_heap = [tally.held["heap"] for tally in tallies]
        total.variance += (length * own) ** 2 * variance_of_mean(on_heap, length)
        error = math.sqrt(total.variance) / max(total.held["heap"], 1.0)
        self._add_shared(total, shared, length / len(tallies))
        return total, error

    def _reach(
        self, stack: list[Any], reached: set[int], met: dict[int, int], shared: dict[int, list[Any]] | None
    ) -> tuple[_Tally, bool]:
        """Size of what `stack` reaches and `reached` does not hold yet, and whether other items may share it.

        References to objects that have a few are counted in `met`. Those that have many are left to `shared`:
        the object and the references to it that were met.
        """
        tally = _Tally()
        several: list[Any] = []
        while stack:
            obj = stack.pop()
            key = _key(obj)
            if key in reached:
                if key in met:
                    met[key] += 1
                continue
            if key in self._counted:
                continue
            references = _references(obj)
            kind = self._kind(type(obj))
            if references > _FEW_REFERENCES:
                if shared is not None and kind is not _Kind.OPAQUE:
                    shared.setdefault(key, [obj, 0])[1] += 1
                continue
            reached.add(key)
            if references > 1 and (kind is not _Kind.ATOM or sys.getsizeof(obj) > _SMALL):
                met[key] = 1
                several.append(obj)
            self._visit(obj, reached, tally, stack, _FEWEST_SAMPLES)
        doubtful = False
        while several and not doubtful:
            obj = several.pop()
            doubtful = _references(obj) > met[_key(obj)]
        return tally, doubtful

    def _own_share(self, container: Container, wanted: list[int]) -> float:
        """The share of their bytes that sampled items may call their own, the rest being their neighbours'.

        Each object is divided among the references to it that are found in the item and its neighbours.
        """
        inner = [at for at in wanted if _NEIGHBOURS <= at < len(container) - _NEIGHBOURS]
        chosen = inner[:: max(1, len(inner) // _RESOLVED)]
        near = around(chosen, _NEIGHBOURS)
        items = dict(zip(near, pick(container, near), strict=True))
        whole = own = 0.0
        for at in chosen:
            here: dict[int, int] = {}
            there: dict[int, int] = {}
            alone, _ = self._reach(list(items[at]), set(), here, None)
            window = [part for other in around([at], _NEIGHBOURS) for part in items[other]]
            self._reach(window, set(), there, None)
            whole += sum(alone.held.values())
            own += self._divided(list(items[at]), {key: count / there[key] for key, count in here.items()})
        return own / whole if whole else 1.0

    def _divided(self, stack: list[Any], shares: dict[int, float]) -> float:
        """Bytes reached from `stack`, each object's times its own share and those of the objects above it."""
        total = 0.0
        weights = [1.0] * len(stack)
        reached: set[int] = set()
        while stack:
            obj = stack.pop()
            key = _key(obj)
            weight = weights.pop() * shares.get(key, 1.0)
            if key in reached or key in self._counted or _references(obj) > _FEW_REFERENCES:
                continue
            reached.add(key)
            tally = _Tally()
            self._visit(obj, reached, tally, stack, _FEWEST_SAMPLES)
            total += weight * sum(tally.held.values())
            weights += [weight] * (len(stack) - len(weights))
        return total

    def _add_shared(self, total: _Tally, shared: dict[int, list[Any]], scale: float) -> None:
        """Charge objects of many references by the share of these that the sample stands for."""
        while shared:
            key, (obj, met) = shared.popitem()
            if key in self._counted:
                continue
            references = _references(obj)
            held, back = self.everything([obj], _FEWEST_SAMPLES)
            outside = references - back
            total.add(held, scale * met / outside if outside > _FEW_REFERENCES else scale * met)


def _key(obj: Any) -> int:
    """What an object is counted by: its id, and the memory of tensors by its address."""
    return int(obj.address) if type(obj) is TensorMemory else id(obj)


def _references(obj: Any) -> int:
    """References to an object that the caller holds in one variable, this one not counted."""
    return obj.references if type(obj) is TensorMemory else sys.getrefcount(obj) - _held


def _measure_held() -> int:
    stack = [object()]
    obj = stack.pop()
    return _references(obj)


_held = 0
_held = _measure_held()


def _values_bytes(cls: type, parts: list[Any]) -> int:
    """Bytes of an instance's attribute values where CPython 3.11 and 3.12 keep them apart from any dict.

    They are an array with one place more than the attributes, and a byte for each before it (`new_values` in
    CPython's Objects/dictobject.c); `parts` holds the class beside the values.
    """
    if not _VALUES_APART or not cls.__flags__ & _MANAGED_DICT or any(type(part) is dict for part in parts):
        return 0
    return 8 * len(parts) + (len(parts) + 2 + 7) // 8 * 8
