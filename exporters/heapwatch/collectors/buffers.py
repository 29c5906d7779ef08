"""Replay buffers: current and maximum items and bytes, and tensors with a graph or on an accelerator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from prometheus_client import Metric

from heapwatch.collectors.declared import NamedSources
from heapwatch.collectors.families import gauges, offheap_bytes
from heapwatch.measure.sizing.deep_size import Size
from heapwatch.measure.sizing.replay_buffers import Attached, Contents, attached_tensors, contents_of
from heapwatch.runtime.failures import Failures
from heapwatch.runtime.sources import Source, count_of


@dataclass(frozen=True)
class BufferSources:
    """The sources of a buffer's values. A value without a source is derived from `container`, if given."""

    container: Source | None = None
    items: Source | None = None
    capacity: Source | None = None
    nbytes: Source | None = None


@dataclass(frozen=True)
class _Size:
    """One measurement of one buffer's bytes; unknown values are None."""

    stored: Size | None
    full_bytes: float | None
    attached: Attached | None
    items: float | None

    def with_items(self, items: float | None) -> _Size:
        """The size scaled to a newer number of items, which are counted more often than measured."""
        if self.stored is None or not self.items or items is None or items == self.items:
            return self
        stored = self.stored.times(items / self.items)
        error_bytes = stored.error_bytes + abs(stored.bytes - self.stored.bytes)
        return replace(self, stored=replace(stored, error_bytes=error_bytes))


class BufferCollector:
    """Counts the items of buffers at safe points; `sizes` measures their bytes, which costs more.

    Keeps a declared capacity: if the program replaces a bounded deque by a plain list, the number of items
    rises above the exported capacity.
    """

    name = "buffers"

    def __init__(self, failures: Failures, interval: float) -> None:
        self.interval = interval
        self.sizes = BufferSizeCollector(self, failures, interval)
        self._sources = NamedSources(self.name, failures)
        self.declared: dict[str, BufferSources] = {}
        self._capacities: dict[str, float] = {}
        self._latest: dict[str, tuple[float | None, float | None]] = {}

    def measure(self, name: str, sources: BufferSources) -> None:
        """Measure a buffer as `name`, the value of the label `buffer`."""
        self.declared[name] = sources
        container = sources.container or Source.constant(0)
        self._sources.register(name, container)
        self.sizes.measure(name, container)

    def sample(self) -> None:
        """Count the items of each buffer."""
        self._latest = self._sources.read(
            lambda name, container: self.count(name, _contents(self.declared[name], container))
        )

    def count(self, name: str, contents: Contents | None) -> tuple[float | None, float | None]:
        """Items and capacity; unknown values are None."""
        sources = self.declared[name]
        items = _number(sources.items, contents.items if contents else None)
        capacity = _number(sources.capacity, contents.capacity if contents else None)
        if capacity is None:
            capacity = self._capacities.get(name)
        else:
            self._capacities[name] = capacity
        return items, capacity

    def recount(self, name: str, contents: Contents | None) -> tuple[float | None, float | None]:
        """Count items and capacity now and store them."""
        counts = self._latest[name] = self.count(name, contents)
        return counts

    def latest(self, name: str) -> tuple[float | None, float | None]:
        """Items and capacity at the last sample."""
        return self._latest.get(name, (None, None))

    def paths(self) -> dict[str, str]:
        """The path of each buffer, such as `agent.memory`; its name if the path is unknown."""
        return {
            name: sources.container.path if sources.container and sources.container.path else name
            for name, sources in list(self.declared.items())
        }

    def collect(self) -> Iterable[Metric]:
        """Yield the counts of the last sample."""
        bound = "Most items that a buffer may hold; absent if it declared no bound."
        yield from gauges(
            "buffer",
            self._latest,
            ("trainer_buffer_items", "Items that a buffer stores.", lambda counted: counted[0]),
            ("trainer_buffer_capacity_items", bound, lambda counted: counted[1]),
        )


class BufferSizeCollector:
    """Measures the bytes of buffers at safe points."""

    name = "buffer_sizes"

    def __init__(self, buffers: BufferCollector, failures: Failures, interval: float) -> None:
        self.interval = interval
        self._buffers = buffers
        self._sources = NamedSources(self.name, failures)
        self._latest: dict[str, _Size] = {}

    def measure(self, name: str, container: Source) -> None:
        """Measure a buffer that `BufferCollector` counts."""
        self._sources.register(name, container)

    def sample(self) -> None:
        """Measure each buffer."""
        self._latest = self._sources.read(self._measure)

    def _measure(self, name: str, container: Any) -> _Size:
        sources = self._buffers.declared[name]
        contents = _contents(sources, container)
        items, capacity = self._buffers.recount(name, contents)
        stored, full_bytes = _bytes(sources, contents, items, capacity)
        return _Size(stored, full_bytes, attached_tensors(contents) if contents else None, items)

    def collect(self) -> Iterable[Metric]:
        """Yield the families of the last sample."""
        latest = {name: size.with_items(self._buffers.latest(name)[0]) for name, size in self._latest.items()}
        yield from gauges("buffer", latest, *_FAMILIES)
        yield offheap_bytes(
            "trainer_buffer", "buffer", {name: size.stored for name, size in latest.items() if size.stored}
        )


_FAMILIES: tuple[tuple[str, str, Callable[[_Size], float | None]], ...] = (
    (
        "trainer_buffer_bytes",
        "Heap bytes of the items that a buffer stores; of a preallocated one the filled part.",
        lambda size: size.stored.bytes if size.stored else None,
    ),
    (
        "trainer_buffer_error_bytes",
        "How far trainer_buffer_bytes may be off, by sampling or by memory that nothing shows; 0 when exact.",
        lambda size: size.stored.error_bytes if size.stored else None,
    ),
    (
        "trainer_buffer_capacity_bytes",
        "Heap bytes that a buffer will hold when full, by the size of its items; absent when unbounded.",
        lambda size: size.full_bytes,
    ),
    (
        "trainer_buffer_attached_tensors",
        "Stored tensors that hold an autograd graph or live on an accelerator, estimated from a sample.",
        lambda size: size.attached.tensors if size.attached else None,
    ),
    (
        "trainer_buffer_graph_tensors",
        "Stored tensors that hold the autograd graph they were computed with, estimated from a sample.",
        lambda size: size.attached.graphs if size.attached else None,
    ),
)


def _contents(sources: BufferSources, container: Any) -> Contents | None:
    return contents_of(container) if sources.container else None


def _number(source: Source | None, value: float | None) -> float | None:
    return value if source is None else count_of(source.read())


def _bytes(
    sources: BufferSources, contents: Contents | None, items: float | None, capacity: float | None
) -> tuple[Size | None, float | None]:
    """Size of the stored items, and the heap bytes of the full buffer."""
    if sources.nbytes:
        size = Size(round(count_of(sources.nbytes.read())))
    elif contents:
        size, full_size = contents.size()
        if full_size is not None:
            return size, full_size.bytes
    else:
        return None, None
    return size, size.bytes / items * capacity if items and capacity else None
