"""Paths to objects, the containers at them, and the reading of their lengths."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal
from weakref import ref

from heapwatch.judge.level import LevelSeries
from heapwatch.measure.introspection.attributes import Gone, attributes_of
from heapwatch.measure.introspection.containers import (
    array_bytes,
    capacity_of,
    is_object_array,
    items_in,
    length_of,
)
from heapwatch.measure.introspection.exclusive_reads import Ask, first_answer
from heapwatch.measure.introspection.layout import Kind, layout_of
from heapwatch.measure.introspection.reading import Step, follow
from heapwatch.measure.introspection.roots import Root
from heapwatch.measure.sizing.replay_buffers import ring_of
from heapwatch.measure.sizing.tensor_storage import has_graph, holds_operation, number_of, read_graphs

SHORTEST_INTERVAL = 1.0  # seconds between two readings of a container
SIZED: tuple[Kind, ...] = ("array", "tensor", "text")  # of which bytes are counted

# Beside the kinds of classes: a buffer object with its arrays, an autograd graph, an array of objects.
KnownKind = Kind | Literal["ring", "graph", "objects"]


@dataclass(slots=True, eq=False, repr=False)
class Place:
    """The path to an object: a root, or a step from another place.

    Attributes:
        weight: number of objects that it stands for, since only some items of a container are visited.
        depth: number of steps from the root.
        item_steps: how many of them lead to an item of a container.
        is_users: whether the path begins in the user's code or passes an object of the user's.

    """

    parent: Place | None
    step: Step | None
    root: Root | None
    weight: float
    depth: int = 0
    item_steps: int = 0
    is_users: bool = False

    def __post_init__(self) -> None:
        self.is_users |= self.root is not None and self.root.is_users
        if self.parent is not None:
            self.is_users |= self.parent.is_users
            self.depth = self.parent.depth + 1
            is_item = self.step is not None and self.step.label == "[*]"
            self.item_steps = self.parent.item_steps + is_item

    @property
    def start(self) -> Root:
        """The root at which the path begins."""
        place = self
        while place.parent is not None:
            place = place.parent
        assert place.root is not None
        return place.root

    @property
    def is_local(self) -> bool:
        """Whether it is a local variable of a running function."""
        root = None if self.parent is None else self.parent.root
        return root is not None and root.frame_code is not None

    def find(self, memory: dict[Place | str, Any]) -> Any:
        """Follow the path to its object.

        Args:
            memory: objects found earlier in this pass, by place or root name. It is extended, but not with
                arrays and tensors: `ndarray.resize` fails in the program while anything else refers to the
                array.

        Raises:
            Gone: nothing is at this path any more.

        """
        if self in memory:
            return memory[self]
        if self.parent is None:
            assert self.root is not None
            name = self.root.name
            obj = memory[name] if name in memory else memory.setdefault(name, self.root.read())
        else:
            assert self.step is not None
            obj = follow(self.parent.find(memory), self.step)
        if gc.is_tracked(obj) and layout_of(type(obj)).kind not in SIZED:
            memory[self] = obj
        return obj

    def seek(self, memory: dict[Place | str, Any]) -> Any:
        """The same as `find`, but None if nothing is at this path any more."""
        with suppress(Gone, RuntimeError):
            return self.find(memory)
        return None


@dataclass(slots=True, eq=False, repr=False)
class KnownContainer:
    """A container, or all containers with the same path, and their levels over time.

    Attributes:
        path: as written in code; `[*]` stands for every item.
        items: the length over time, or the mean of several; bytes for arrays and texts; for graphs see below.
        places_read: number of places in the mean of the last reading.
        multiplicity: number of containers with this path.
        held: the bytes of all of them over time, measured when there were `weighed_items` items.
        shared_share: how much of them is in shared memory, 0 to 1.
        weighing_due: when it may be measured again, after `weigh_failures` measurements that took too long.
        leaking_since: start of the growth by which it leaks; None while it is not found to leak.
        newest: for a graph, the numbers of its newest operation at the last two readings.
        identity: id of the container; of the first one, if several have this path.

    For an autograd graph `items` is the time in seconds for which each reading found operations of the last
    reading among newer ones. It is 0 for a graph that each step replaces, however large it is.

    """

    path: str
    kind: KnownKind
    type_name: str
    due: float = 0.0
    places: list[Place] = field(default_factory=list)
    places_read: int = 0
    items: LevelSeries = field(default_factory=LevelSeries)
    held: LevelSeries = field(default_factory=LevelSeries)
    multiplicity: float = 1.0
    capacity: int | None = None
    interval: float = SHORTEST_INTERVAL
    misses: int = 0
    weighed_items: float = 0.0
    leaking_since: float | None = None
    shared_share: float = 0.0
    weigh_failures: int = 0
    weighing_due: float = float("-inf")
    newest: tuple[int, int] = (-1, -1)
    identity: int = 0

    def stand_for(self, multiplicity: float) -> None:
        """Set the number of containers with this path, and scale the bytes of all of them."""
        if multiplicity > self.multiplicity:
            if self.kind != "ring":  # whose bytes are those of each
                self.held.scale(multiplicity / self.multiplicity)
            self.multiplicity = multiplicity

    def join(self, levels: list[float]) -> None:
        """Scale earlier readings if more places are read now, as if all had been read then.

        Otherwise the mean of other containers would look like growth, or end an even rate.
        """
        earlier, last = levels[: self.places_read], self.items.last
        if 0 < len(earlier) < len(levels) and sum(earlier) > 0:
            mean, level = sum(earlier) / len(earlier), sum(levels) / len(levels)
            self.items.scale(level / mean)
            if self.kind != "ring":
                self.held.scale(level / mean)
            self.weighed_items *= level / mean
            if last == mean:
                self.items.last = level
        self.places_read = len(levels)

    @property
    def bytes_each(self) -> float | None:
        """Bytes of an item; None while they are not measured."""
        counted = self.items.last if self.kind == "ring" else self.weighed_items
        return self.held.last / counted if self.held.last is not None and counted else None

    @property
    def bytes_of_new(self) -> float | None:
        """Bytes of an item added since the first measurement, without memory that all items share.

        Until enough items have been added, the bytes of any item.
        """
        first = next(iter(self.held.since(float("-inf"))), None)
        items = None if first is None else self.items.at(first.end)
        if first is None or not items or self.weigh_failures or self.weighed_items < _GROWN * items:
            return self.bytes_each
        return (
            max(0.0, (self.held.last or 0.0) - first.last) / (self.weighed_items - items) or self.bytes_each
        )

    @property
    def shared_bytes(self) -> float:
        """Bytes that all of them hold in shared memory; 0 while they are not measured."""
        return self.shared_share * (self.bytes_each or 0.0) * (self.items.last or 0.0)

    @property
    def in_bytes(self) -> bool:
        """Whether `items` are bytes."""
        return self.kind in SIZED

    @property
    def counted(self) -> bool:
        """Whether `items` are items."""
        return not self.in_bytes and self.kind != "graph"


_GROWN = 1.5  # multiple of the first items, from which the bytes of new ones are known
_LONGEST_INTERVAL = 30.0  # between readings of an unchanged container, up to this number of containers
_READ_AT_THAT_RATE = 200
_BACKED_OFF = 4.0
_GRAPH_INTERVAL = 5.0
_MOST_GRAPHS = 200  # read at once: some 0.1 ms
_GRAPHS_SHARE = 0.0004  # of the time, for all autograd graphs together: one of a large model takes 10 ms


class Lengths:
    """Reads the containers of an `Inventory` in slices of CPU time, and drops those that are gone.

    Attributes:
        shortest_interval: seconds between readings of a container that changes.
        graphs_unread: whether the autograd graphs could not be read the last time.

    """

    def __init__(
        self,
        known: dict[str, KnownContainer],
        clock: Callable[[], float],
        spent: Callable[[], float],
        ask: Ask,
    ) -> None:
        self.shortest_interval = SHORTEST_INTERVAL
        self.graphs_unread = False
        self._known = known
        self._clock = clock
        self._spent = spent
        self._ask = ask
        self._graphs_due = self._graphs_asked = float("-inf")

    def read(self, seconds: float) -> int:
        """Read the containers that are due for this many CPU seconds; returns how many were read."""
        now, until = self._clock(), self._spent() + seconds
        due = [container for container in list(self._known.values()) if container.due <= now]
        memory: dict[Place | str, Any] = {}
        count = 0
        graphs = [container for container in due if container.kind == "graph"]
        # By delay relative to the interval: if time is short, unchanged containers wait.
        for container in sorted(due, key=lambda container: (container.due - now) / container.interval):
            if container.kind == "graph":
                continue
            self._read(container, now, memory)
            count += 1
            if not count & 15:
                if self._spent() > until:
                    break
                if len(memory) > 2000:
                    memory.clear()
        memory.clear()
        if graphs and now >= self._graphs_asked + SHORTEST_INTERVAL:
            self._graphs_asked = now
            self._read_graphs(graphs[:_MOST_GRAPHS], now)
            count += 1
        return count

    def read_named(self, paths: Iterable[str]) -> None:
        """Read these containers if they are due, without a limit of time: there must be few."""
        now = self._clock()
        for path in paths:
            container = self._known.get(path)
            if container is not None and container.kind != "graph" and container.due <= now:
                self._read(container, now, {})

    def _read(self, container: KnownContainer, now: float, memory: dict[Place | str, Any]) -> None:
        levels: list[float] = []
        for place in container.places:
            with suppress(Gone, RuntimeError):
                level = _level_of(container, place.find(memory), now)
                levels += [] if level is None else [level]
        if not levels:
            self._miss(container, now)
            if container.places and container.places[0].is_local:
                self._known.pop(container.path, None)  # it lived for one call
            return
        container.misses = 0
        if len(levels) == len(container.places):
            container.join(levels)
        level = sum(levels) / len(levels)
        changed = level != container.items.last
        container.items.add(now, level)
        longest = _LONGEST_INTERVAL * max(1.0, len(self._known) / _READ_AT_THAT_RATE)
        shortest = self.shortest_interval
        container.interval = (
            shortest if changed else min(longest, max(shortest, container.interval) * _BACKED_OFF)
        )
        container.due = now + container.interval

    def _read_graphs(self, graphs: list[KnownContainer], now: float) -> None:
        """Read the newest operations of graphs, and look for older ones in one of them if it is its turn."""
        tensors: dict[int, tuple[KnownContainer, ref[Any]]] = {}
        for container in graphs:
            tensor = container.places[0].seek({})
            if has_graph(tensor):
                container.due = now + _GRAPH_INTERVAL
                tensors[id(tensor)] = container, ref(tensor)  # weak: the program may free it meanwhile
            else:
                self._miss(container, now)
        tensor = None
        weak_tensors = [weak for _, weak in tensors.values()]
        read = first_answer(partial(read_graphs, weak_tensors), self._ask) if tensors else []
        self.graphs_unread = read is None
        if read is None:
            return
        may_search = now >= self._graphs_due
        searched = min(graphs, key=lambda container: container.items.read_at) if may_search else None
        operations = dict(read)
        read.clear()
        for key, (container, _) in tensors.items():
            operation = operations.pop(key, None)
            if operation is None:
                self._miss(container, now)
            else:
                self._read_graph(container, operation, now, search=container is searched)

    def _read_graph(self, container: KnownContainer, operation: Any, now: float, *, search: bool) -> None:
        """Note the newest operation of a graph and, if `search`, look for operations of the last reading.

        A search may take long. It looks for operations made between the last two readings. It takes longer if
        more operations were made since.
        """
        newest = number_of(operation)
        container.misses = 0
        container.interval = _GRAPH_INTERVAL
        kept_seconds, (first, last) = container.items.last or 0.0, container.newest
        if newest == last:
            container.items.add(now, kept_seconds)
            return
        container.newest = (last, newest)
        if first < 0:
            container.items.add(now, 0.0)
        elif search:
            began = self._spent()
            is_kept = holds_operation(operation, first, last)
            self._graphs_due = now + (self._spent() - began) / _GRAPHS_SHARE
            container.items.add(now, kept_seconds + now - container.items.read_at if is_kept else 0.0)

    def _miss(self, container: KnownContainer, now: float) -> None:
        container.misses += 1
        container.due = now + container.interval
        if container.misses > 20:
            self._known.pop(container.path, None)


def _level_of(container: KnownContainer, obj: Any, now: float) -> float | None:
    """The length or the bytes of an object at the path of a container; also sets its kind and capacity."""
    layout = layout_of(type(obj))
    level: float | None
    if container.kind == "ring":
        return _read_ring(container, obj, now)
    if is_object_array(obj):
        level, container.capacity = items_in(obj, layout), int(obj.size)
    elif layout.kind in SIZED:
        level = array_bytes(obj, layout)
    else:
        level, container.capacity = length_of(obj, layout), capacity_of(obj, layout)
    if level is not None:
        container.kind = "objects" if is_object_array(obj) else layout.kind
        container.type_name = layout.name
    return level


def _read_ring(container: KnownContainer, obj: Any, now: float) -> float | None:
    namespace = attributes_of(obj)
    ring = None if namespace is None else ring_of(namespace)
    if ring is None:
        return None
    container.capacity = ring.rows
    container.held.add(now, ring.held_bytes)
    return ring.filled
