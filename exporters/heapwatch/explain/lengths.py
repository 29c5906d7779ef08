"""Reads the lengths of known containers: those that change often, the others more and more rarely."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import ref

from heapwatch.explain.places import SHORTEST_INTERVAL, SIZED, KnownContainer, Place
from heapwatch.measure.introspection.alone import Ask, first_answer
from heapwatch.measure.introspection.attributes import Gone, attributes_of
from heapwatch.measure.introspection.containers import (
    array_bytes,
    capacity_of,
    is_object_array,
    items_in,
    length_of,
)
from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.introspection.written import type_name
from heapwatch.measure.sizing.graph import has_graph, holds_operation, number_of, read_graphs
from heapwatch.measure.sizing.replay_buffers import ring_of

_LONGEST_INTERVAL = 30.0  # between readings of an unchanged container, up to this number of containers
_READ_AT_THAT_RATE = 200
_BACKED_OFF = 4.0
_GRAPH_INTERVAL = 5.0
_MOST_GRAPHS = 200  # read at once: some 0.1 ms
_GRAPHS_SHARE = 0.0004  # of the time, for all autograd graphs together: one of a large model takes 10 ms


class Lengths:
    """Reads containers in slices of a given CPU time.

    Args:
        known: containers by path; those that are gone are dropped.
        clock: monotonic seconds.
        spent: CPU seconds of the calling thread.
        ask: runs a read in the thread that may do it.

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
        due = [known for known in list(self._known.values()) if known.due <= now]
        memory: dict[Place | str, Any] = {}
        count = 0
        graphs = [known for known in due if known.kind == "graph"]
        # By delay relative to the interval: if time is short, unchanged containers wait.
        for known in sorted(due, key=lambda known: (known.due - now) / known.interval):
            if known.kind == "graph":
                continue
            self._read(known, now, memory)
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

    def _read(self, known: KnownContainer, now: float, memory: dict[Place | str, Any]) -> None:
        total, count = 0.0, 0
        for place in known.places:
            try:
                obj = place.find(memory)
                layout = layout_of(type(obj))
                level: float | None
                if known.kind == "ring":
                    level = _read_ring(known, obj, now)
                elif is_object_array(obj):
                    level, known.capacity = items_in(obj, layout), int(obj.size)
                elif layout.kind in SIZED:
                    level = array_bytes(obj, layout)
                else:
                    level = length_of(obj, layout)
                    known.capacity = capacity_of(obj, layout)
            except (Gone, RuntimeError):
                continue
            if level is not None:
                if known.kind != "ring":
                    known.kind = "objects" if is_object_array(obj) else layout.kind
                    known.type_name = type_name(layout)
                total += level
                count += 1
        if not count:
            self._miss(known, now)
            if known.places and known.places[0].is_local:
                self._known.pop(known.path, None)  # it lived for one call
            return
        known.misses = 0
        level = total / count
        changed = level != known.items.last
        known.items.add(now, level)
        longest = _LONGEST_INTERVAL * max(1.0, len(self._known) / _READ_AT_THAT_RATE)
        shortest = self.shortest_interval
        known.interval = shortest if changed else min(longest, max(shortest, known.interval) * _BACKED_OFF)
        known.due = now + known.interval

    def _read_graphs(self, graphs: list[KnownContainer], now: float) -> None:
        """Read the newest operations of graphs, and look for older ones in one of them if it is its turn."""
        tensors: dict[int, tuple[KnownContainer, ref[Any]]] = {}
        for known in graphs:
            found = self._weak(known)
            if found is None:
                self._miss(known, now)
            else:
                known.due = now + _GRAPH_INTERVAL
                tensors[found[0]] = known, found[1]
        wanted = partial(read_graphs, [weak for _, weak in tensors.values()])
        read = [] if not tensors else first_answer(wanted, self._ask)
        self.graphs_unread = read is None
        if read is None:
            return
        may_search = now >= self._graphs_due
        searched = min(graphs, key=lambda known: known.items.read_at) if may_search else None
        operations = dict(read)
        read.clear()
        for key, (known, _) in tensors.items():
            operation = operations.pop(key, None)
            if operation is None:
                self._miss(known, now)
            else:
                self._read_graph(known, operation, now, search=known is searched)

    def _weak(self, known: KnownContainer) -> tuple[int, ref[Any]] | None:
        """The id of a tensor with a graph, and a weak reference: the program may free it meanwhile."""
        with suppress(Gone, RuntimeError):
            tensor = known.places[0].find({})
            if has_graph(tensor):
                return id(tensor), ref(tensor)
        return None

    def _read_graph(self, known: KnownContainer, operation: Any, now: float, *, search: bool) -> None:
        """Note the newest operation of a graph and, if `search`, look for operations of the last reading.

        A search may take long. It looks for operations made between the last two readings. It takes longer if
        more operations were made since.
        """
        newest = number_of(operation)
        known.misses = 0
        known.interval = _GRAPH_INTERVAL
        kept_seconds, (earlier, before) = known.items.last or 0.0, known.newest
        if newest == before:
            known.items.add(now, kept_seconds)
            return
        known.newest = (before, newest)
        if earlier < 0:
            known.items.add(now, 0.0)
        elif search:
            began = self._spent()
            held = holds_operation(operation, earlier, before)
            self._graphs_due = now + (self._spent() - began) / _GRAPHS_SHARE
            known.items.add(now, kept_seconds + now - known.items.read_at if held else 0.0)

    def _miss(self, known: KnownContainer, now: float) -> None:
        known.misses += 1
        known.due = now + known.interval
        if known.misses > 20:
            self._known.pop(known.path, None)


def _read_ring(known: KnownContainer, obj: Any, now: float) -> float | None:
    namespace = attributes_of(obj)
    ring = None if namespace is None else ring_of(namespace)
    if ring is None:
        return None
    known.capacity = ring.rows
    known.held.add(now, ring.held_bytes)
    return ring.filled
