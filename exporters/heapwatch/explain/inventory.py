"""What containers a program holds, found from its roots in small slices, and how long each of them is.

A place is a way from a root to an object: it holds no object of the program, and is followed anew each time.
A slice of discovery visits as many places as its time allows, breadth first, so that what hangs close to the
roots is known soon. What was found is read again and again, more rarely while it does not change.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Literal

from heapwatch.explain.series import Series
from heapwatch.measure.graph import graph_of, holds_operation, newest_operation
from heapwatch.measure.layout import Kind, Layout, layout_of, namespace_of
from heapwatch.measure.own_time import own_time
from heapwatch.measure.reading import (
    Gone,
    Step,
    array_bytes,
    capacity_of,
    follow,
    instance_dict,
    length_of,
    namespace_parts,
    parts,
)
from heapwatch.measure.rings import ring_of
from heapwatch.measure.roots import (
    Root,
    frame_roots,
    is_user_file,
    is_user_module,
    module_root,
    registry_roots,
    user_modules,
)

SAMPLES = (8, 3, 1)  # items looked into, by how many containers are around them
_DEEPEST = 14
_MOST_PENDING = 20_000
_MOST_VISITED = 20_000
_MOST_KNOWN = 3000
_MOST_ANCHORS = 3000
_MOST_PLACES = 8  # of one path
_LARGE = 65_536  # bytes from which an array or a text is watched by itself
_LONG_NAMESPACE = 64
_SHORTEST_INTERVAL = 1.0
_LONGEST_INTERVAL = 30.0  # of what stands still, where no more than so many containers are known
_READ_AT_THAT_RATE = 200
_BACKED_OFF = 4.0
_GRAPH_INTERVAL = 5.0
_GRAPHS_SHARE = 0.0004  # of the time, for all autograd graphs together: one of a large model takes 10 ms
_LISTED: tuple[Kind, ...] = ("list", "deque", "dict", "set", "cache", "programs", "frame_table", "raw")
_SIZED: tuple[Kind, ...] = ("array", "tensor", "text")
_CLASS_BOOKKEEPING = frozenset(
    ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__slots__", "__mro_entries__",
     "__parameters__", "__orig_bases__", "__dataclass_fields__", "__abstractmethods__", "_abc_impl",
     "__match_args__", "__firstlineno__", "__static_attributes__", "__annotate__")
)  # fmt: skip
_SKIPPED_MODULES = ("heapwatch", "typing", "inspect", "re", "enum", "ast", "importlib", "_frozen_importlib",
                    "_frozen_importlib_external", "zipimport", "abc", "dis", "ctypes", "pathlib")  # fmt: skip


class Place:
    """A way to an object: a root, or a step from another place."""

    __slots__ = ("depth", "folds", "parent", "root", "step", "weight")

    def __init__(self, parent: Place | None, step: Step | None, root: Root | None, weight: float) -> None:
        self.parent = parent
        self.step = step
        self.root = root
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.folds: int = 0 if parent is None else parent.folds + (step is not None and step.label == "[*]")
        self.weight = weight

    def find(self, memory: dict[Place | str, Any]) -> Any:
        """The object that is there now. `memory` holds what was found for other places, for the moment.

        Raises:
            Gone: it is not there any more.

        """
        if self in memory:
            return memory[self]
        if self.parent is None:
            assert self.root is not None
            name = self.root.name
            found = memory[name] if name in memory else memory.setdefault(name, self.root.read())
        else:
            assert self.step is not None
            found = follow(self.parent.find(memory), self.step)
        memory[self] = found
        return found


class Known:
    """A container, or one in each of several objects of a kind, and what was read of it.

    Attributes:
        path: how a person would write it; `[*]` stands for every item.
        items: readings of its length, of several the mean; of arrays and texts bytes, of graphs see below.
        multiplicity: how many such containers there are.
        held: readings of its bytes, by whoever weighs it, when it had `weighed_items`.
        weighing_due: when it may be weighed again, after `weigh_failures` weighings that took too long.
        newest: of a graph, the numbers of its newest operation when it was read the last two times.

    Of a graph `items` are the seconds for which each reading found operations of the time before beside newer
    ones. A graph that each step makes anew has none, however large it is.

    """

    __slots__ = (
        "capacity", "due", "held", "interval", "items", "kind", "misses", "multiplicity", "newest", "path",
        "places", "type_name", "weigh_failures", "weighed_items", "weighing_due",
    )  # fmt: skip

    def __init__(
        self, path: str, kind: Kind | Literal["ring", "graph"], type_name: str, due: float = 0.0
    ) -> None:
        self.path = path
        self.kind: Kind | Literal["ring", "graph"] = kind
        self.type_name = type_name
        self.places: list[Place] = []
        self.items = Series()
        self.held = Series()
        self.multiplicity = 1.0
        self.capacity: int | None = None
        self.interval = _SHORTEST_INTERVAL
        self.due = due
        self.misses = 0
        self.weighed_items = 0.0
        self.weigh_failures = 0
        self.weighing_due = float("-inf")
        self.newest = (-1, -1)

    @property
    def in_bytes(self) -> bool:
        """Whether what is read are bytes, not items."""
        return self.kind in _SIZED

    @property
    def counted(self) -> bool:
        """Whether what is read are items."""
        return not self.in_bytes and self.kind != "graph"


class Inventory:
    """Finds containers and reads their lengths; both in as little time as they are given.

    Args:
        clock: seconds, monotonic.
        spent: seconds of CPU time of the calling thread.
        extra_roots: further roots, asked for at each round.

    Attributes:
        known: containers by path.
        rounds: how often everything was walked through.
        visited: objects met in the last round.
        anchors: path by id of objects that are reached without going through a container's items; those that
            an item refers to are not the item's own.

    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] = own_time,
        extra_roots: Callable[[], list[Root]] = list,
    ) -> None:
        self.known: dict[str, Known] = {}
        self.rounds = 0
        self.visited = 0
        self.anchors: dict[int, str] = {}
        self._clock = clock
        self._spent = spent
        self._extra_roots = extra_roots
        self._pending: deque[tuple[Place, str]] = deque()
        self._seen: set[int] = set()
        self._anchors: dict[int, str] = {}
        self._round_known: set[str] = set()
        self._round_multiplicity: dict[str, float] = {}
        self._graphs_due = float("-inf")

    def discover(self, seconds: float) -> bool:
        """Look for containers for so many seconds of CPU time; True when a round through all is complete."""
        until = self._spent() + seconds
        if not self._pending:
            self._begin()
        count = 0
        while self._pending:
            place, path = self._pending.popleft()
            with suppress(Gone, RuntimeError):
                self._visit(place, path)
            count += 1
            if not count & 7 and self._spent() > until:
                return False
            if len(self._seen) > _MOST_VISITED:
                self._pending.clear()
        self._complete()
        return True

    def read(self, seconds: float) -> int:
        """Read the containers that are due, for so many seconds of CPU time; how many were read."""
        now, until = self._clock(), self._spent() + seconds
        due = [known for known in list(self.known.values()) if known.due <= now]
        memory: dict[Place | str, Any] = {}
        count = 0
        # What changes is late after a second: where time is short, what stands still waits.
        graphs = (known for known in due if known.kind == "graph" and now >= self._graphs_due)
        searched = min(graphs, key=lambda known: known.items.read_at, default=None)
        for known in sorted(due, key=lambda known: (known.due - now) / known.interval):
            if known.kind == "graph":
                self._read_graph(known, now, memory, search=known is searched)
            else:
                self._read(known, now, memory)
            count += 1
            if known is searched or not count & 15:
                if self._spent() > until:
                    break
                if len(memory) > 2000:
                    memory.clear()
        return count

    def places_of(self, known: Known) -> Iterator[tuple[Any, Layout]]:
        """The objects of a path, for the moment."""
        for place in known.places:
            try:
                obj = place.find({})
            except (Gone, RuntimeError):
                continue
            yield obj, layout_of(type(obj))

    def _begin(self) -> None:
        self._seen = set()
        self._anchors = {}
        self._round_known = set()
        self._round_multiplicity = {}
        modules = user_modules()
        roots = [module_root(name) for name in sorted(modules, key=lambda name: name != "__main__")]
        for root in [*roots, *self._extra_roots(), *frame_roots(), *registry_roots()]:
            self._pending.append((Place(None, None, root, 1.0), root.label))

    def _complete(self) -> None:
        self.rounds += 1
        self.visited = len(self._seen)
        self.anchors, self._anchors = self._anchors, {}
        self._seen = set()
        for path, multiplicity in self._round_multiplicity.items():
            self.known[path].multiplicity = max(self.known[path].multiplicity, multiplicity)
        if len(self.known) > _MOST_KNOWN:
            stale = sorted(
                (path for path in self.known if path not in self._round_known),
                key=lambda path: self.known[path].items.growth().total,
            )
            for path in stale[: len(self.known) - _MOST_KNOWN]:
                del self.known[path]

    def _visit(self, place: Place, path: str) -> None:
        obj = place.find({})
        cls = type(obj)
        layout = layout_of(cls)
        if place.root is not None and place.root.namespace:
            self._namespace(obj, place, path)
            return
        if layout.kind == "class":
            if is_user_module(_module_of(obj)):
                for name, value in list(namespace_of(obj).items()):
                    if type(name) is str and name not in _CLASS_BOOKKEEPING:
                        self._push(value, place, Step("class", name, f".{name}"), path)
            return
        self._note(obj, layout, place, path)
        if layout.kind == "object" and layout.namespace is not None:
            self._note_ring(obj, layout, place, path)
        samples = SAMPLES[min(place.folds, len(SAMPLES) - 1)]
        count = 0
        found = list(parts(obj, layout, samples))
        length = length_of(obj, layout) or 0
        folded = sum(step.label == "[*]" for step, _ in found)
        weight = place.weight * max(1.0, length / folded if folded else 1.0)
        for step, part in found:
            self._push(part, place, step, path, weight if step.label == "[*]" else place.weight)
            count += step.how == "name"
        if count >= _LONG_NAMESPACE:
            attributes = Place(place, Step("attributes", "", ".__dict__"), None, place.weight)
            self._note(instance_dict(obj), layout_of(dict), attributes, f"{path}.__dict__")
        if layout.kind == "object" and is_user_module(layout.module):
            name = layout.name if layout.module == "__main__" else f"{layout.module}.{layout.name}"
            self._push(cls, place, Step("type", "", ""), name, full=True)

    def _namespace(self, namespace: dict[str, Any], place: Place, path: str) -> None:
        if len(namespace) >= _LONG_NAMESPACE:
            self._note(namespace, layout_of(dict), place, f"{path or '__main__'}.__dict__")
        for step, part in list(namespace_parts(namespace)):
            name = str(step.key)
            if _dunder(name):
                continue
            label = f"{path}.{name}" if path else name
            self._push(part, place, step, label, full=True)

    def _push(
        self, obj: Any, place: Place, step: Step, path: str, weight: float = 1.0, full: bool = False
    ) -> None:
        layout = layout_of(type(obj))
        kind = layout.kind
        if kind in ("atom", "module"):
            return
        if kind in _SIZED:
            if kind == "tensor" and place.folds == 0 and graph_of(obj) is not None:
                graph = Place(place, step, None, weight)
                self._remember(path if full else path + step.label, "graph", layout, graph)
                return
            if (array_bytes(obj, layout) or 0) < _LARGE:
                return
        elif id(obj) in self._seen:
            return
        if kind == "function" and not is_user_file(obj.__code__.co_filename):
            return
        if kind == "object" and layout.module.partition(".")[0] in _SKIPPED_MODULES:
            return
        if layout.qualified_name == "logging.Manager" and place.parent is not None:
            return  # every logger leads to all others
        label = path if full else path + step.label
        self._seen.add(id(obj))
        below = Place(place, step, None, weight)
        if below.folds == 0 and len(self._anchors) < _MOST_ANCHORS:
            self._anchors[id(obj)] = label
        if kind in _SIZED:
            self._note(obj, layout, below, label)
        elif below.depth <= _DEEPEST and len(self._pending) < _MOST_PENDING:
            self._pending.append((below, label))

    def _note_ring(self, obj: Any, layout: Layout, place: Place, path: str) -> None:
        namespace = instance_dict(obj)
        if type(namespace) is dict and ring_of(namespace) is not None:
            self._remember(path, "ring", layout, place)

    def _note(self, obj: Any, layout: Layout, place: Place, path: str) -> None:
        if layout.kind not in _LISTED and layout.kind not in _SIZED:
            return
        if layout.kind in _SIZED and (array_bytes(obj, layout) or 0) < _LARGE:
            return
        self._remember(path, layout.kind, layout, place)

    def _remember(
        self, path: str, kind: Kind | Literal["ring", "graph"], layout: Layout, place: Place
    ) -> None:
        if not path:
            return
        known = self.known.get(path)
        if known is None:
            if len(self.known) >= 2 * _MOST_KNOWN:
                return
            known = self.known[path] = Known(path, kind, layout.name, self._clock())
        if path not in self._round_known:
            self._round_known.add(path)
            self._round_multiplicity[path] = 0.0
            known.places = []
        self._round_multiplicity[path] += place.weight
        # Of graphs one is followed: several of one path, such as the states of a rollout, hold each other's.
        if len(known.places) < (1 if kind == "graph" else _MOST_PLACES):
            known.places.append(place)

    def _read(self, known: Known, now: float, memory: dict[Place | str, Any]) -> None:
        total, count = 0.0, 0
        for place in known.places:
            try:
                obj = place.find(memory)
                layout = layout_of(type(obj))
                level: float | None
                if known.kind == "ring":
                    level = _read_ring(known, obj, now)
                elif layout.kind in _SIZED:
                    level = array_bytes(obj, layout)
                else:
                    level = length_of(obj, layout)
                    known.capacity = capacity_of(obj, layout)
            except (Gone, RuntimeError):
                continue
            if level is not None:
                if known.kind != "ring":
                    known.kind, known.type_name = layout.kind, layout.name
                total += level
                count += 1
        if not count:
            self._miss(known, now)
            return
        known.misses = 0
        level = total / count
        changed = level != known.items.last
        known.items.add(now, level)
        longest = _LONGEST_INTERVAL * max(1.0, len(self.known) / _READ_AT_THAT_RATE)
        known.interval = _SHORTEST_INTERVAL if changed else min(longest, known.interval * _BACKED_OFF)
        known.due = now + known.interval

    def _read_graph(self, known: Known, now: float, memory: dict[Place | str, Any], *, search: bool) -> None:
        """Note a graph's newest operation and, if asked to, search it for operations of the time before.

        A search may take long. What it looks for are operations made between the last two readings: the more
        that lie between them and now, the further it would have to go back.
        """
        newest = None
        with suppress(Gone, RuntimeError):
            tensor = known.places[0].find(memory)
            newest = newest_operation(tensor)
        if newest is None:
            self._miss(known, now)
            return
        known.misses = 0
        known.interval = _GRAPH_INTERVAL
        known.due = now + known.interval
        piled, (earlier, before) = known.items.last or 0.0, known.newest
        if newest == before:
            known.items.add(now, piled)
            return
        known.newest = (before, newest)
        if earlier < 0:
            known.items.add(now, 0.0)
        elif search:
            began = self._spent()
            held = holds_operation(tensor, earlier, before)
            self._graphs_due = now + (self._spent() - began) / _GRAPHS_SHARE
            known.items.add(now, piled + now - known.items.read_at if held else 0.0)

    def _miss(self, known: Known, now: float) -> None:
        known.misses += 1
        known.due = now + known.interval
        if known.misses > 20:
            self.known.pop(known.path, None)


def _read_ring(known: Known, obj: Any, now: float) -> float | None:
    namespace = instance_dict(obj)
    ring = ring_of(namespace) if type(namespace) is dict else None
    if ring is None:
        return None
    known.capacity = ring.rows
    known.held.add(now, ring.held_bytes)
    return ring.filled


def _module_of(cls: type) -> str:
    module = namespace_of(cls).get("__module__", "builtins")
    return module if type(module) is str else "builtins"


def _dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
