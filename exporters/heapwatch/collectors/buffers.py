"""Replay buffers: items and bytes, now and when full, and tensors that should not be in there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from heapwatch.collectors.named_sources import NamedSources
from heapwatch.collectors.off_heap import offheap_bytes
from heapwatch.measure.buffers import Contents, attached_tensors, contents_of
from heapwatch.measure.deep_size import Size
from heapwatch.runtime.failures import Failures
from heapwatch.runtime.sources import Source


@dataclass(frozen=True)
class _Told:
    """What the trainer tells about a buffer instead of letting it be found."""

    items: Callable[[], float] | None
    capacity: float | Callable[[], float] | None
    nbytes: Callable[[], float] | None


@dataclass(frozen=True)
class _Reading:
    """One sample of one buffer; None is what could not be known."""

    items: float | None
    capacity: float | None
    size: Size | None
    full_bytes: float | None
    attached: float | None


class BufferCollector:
    """Measures buffers at safe points.

    A capacity that was declared once stays: when a bounded deque is replaced by a plain list, its items rise
    above the capacity that is still exported.
    """

    name = "buffers"

    def __init__(self, failures: Failures, interval: float) -> None:
        self.interval = interval
        self._sources = NamedSources(self.name, failures)
        self._told: dict[str, _Told] = {}
        self._declared: dict[str, float] = {}
        self._latest: dict[str, _Reading] = {}

    def add(
        self,
        name: str,
        source: Source | None,
        items: Callable[[], float] | None = None,
        capacity: float | Callable[[], float] | None = None,
        nbytes: Callable[[], float] | None = None,
    ) -> None:
        """Measure a buffer as `name`.

        Args:
            name: value of the label `buffer`.
            source: the buffer; None when `items` and `nbytes` tell all.
            items: returns how many items are stored, instead of counting them.
            capacity: how many items it may hold, or what returns that.
            nbytes: returns the bytes that are stored, instead of measuring them.

        Raises:
            ValueError: neither a source nor a callable was given.

        """
        if source is None and items is None and nbytes is None:
            raise ValueError(f"buffer {name!r}: give the buffer, or the callables items= and nbytes=")
        self._told[name] = _Told(items, capacity, nbytes)
        self._sources.add(name, source if source is not None else Source(lambda: None, "callables"))

    def sample(self) -> None:
        """Measure each buffer."""
        self._latest = self._sources.read(self._measure)

    def _measure(self, name: str, buffer: Any) -> _Reading:
        told = self._told[name]
        found = contents_of(buffer) if buffer is not None else None
        items = told.items() if told.items else found.items if found else None
        capacity = told.capacity() if callable(told.capacity) else told.capacity
        if capacity is None and found is not None:
            capacity = found.capacity
        if capacity is not None:
            self._declared[name] = capacity
        capacity = self._declared.get(name)
        size, full_bytes = self._bytes(told, found, items, capacity)
        return _Reading(items, capacity, size, full_bytes, attached_tensors(found) if found else None)

    @staticmethod
    def _bytes(
        told: _Told, found: Contents | None, items: float | None, capacity: float | None
    ) -> tuple[Size | None, float | None]:
        """What is stored, and the heap bytes of the full buffer."""
        if told.nbytes:
            size, allocated = Size(round(told.nbytes())), None
        elif found:
            size, allocated = found.size()
        else:
            return None, None
        if allocated is not None:
            return size, allocated.bytes
        return size, size.bytes / items * capacity if items and capacity else None

    def collect(self) -> Iterable[Metric]:
        """Yield the families of the last sample."""
        latest = self._latest
        for metric, documentation, value_of in _FAMILIES:
            family = GaugeMetricFamily(metric, documentation, labels=["buffer"])
            for name, reading in latest.items():
                value = value_of(reading)
                if value is not None:
                    family.add_metric([name], value)
            yield family
        yield offheap_bytes(
            "trainer_buffer",
            "buffer",
            {name: reading.size for name, reading in latest.items() if reading.size},
        )


_FAMILIES: tuple[tuple[str, str, Callable[[_Reading], float | None]], ...] = (
    ("trainer_buffer_items", "Items that a buffer stores.", lambda reading: reading.items),
    (
        "trainer_buffer_capacity_items",
        "Items that a buffer declares to hold at most; absent while it never declared a bound.",
        lambda reading: reading.capacity,
    ),
    (
        "trainer_buffer_bytes",
        "Heap bytes of the items that a buffer stores; of a preallocated one by how far it is filled.",
        lambda reading: reading.size.bytes if reading.size else None,
    ),
    (
        "trainer_buffer_error_bytes",
        "Standard error of trainer_buffer_bytes, which is estimated from a sample; 0 when it is exact.",
        lambda reading: reading.size.error_bytes if reading.size else None,
    ),
    (
        "trainer_buffer_capacity_bytes",
        "Heap bytes that a buffer will hold when full, by the size of its real items; absent when unbounded.",
        lambda reading: reading.full_bytes,
    ),
    (
        "trainer_buffer_attached_tensors",
        "Stored tensors that hold an autograd graph or live on an accelerator, estimated from a sample.",
        lambda reading: reading.attached,
    ),
)
