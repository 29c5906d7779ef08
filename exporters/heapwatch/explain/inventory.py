"""Finds the containers of a program from its roots, in short slices of time.

A place is the chain of steps from a root to one object. It keeps no reference to an object of the program:
each reading follows the steps again. A path is what such places are called, such as `agents[*].memory`, which
stands for the places in all agents. An anchor is an object that has a place of its own.

The search is breadth first from each root and finds objects near the roots early. Globals come first, then
the variables of the outermost function, and so on inwards. So an object has the name that lasts longest, and
the same name in each walk. A walk stops after many objects, and the next one continues there. Containers with
which libraries manage their objects are listed only if they grow.
"""

from __future__ import annotations

import re
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, islice
from types import FunctionType
from typing import Any

from heapwatch.explain.places import SHORTEST_INTERVAL, SIZED, KnownContainer, KnownKind, Lengths, Place
from heapwatch.explain.sites import is_user_class
from heapwatch.measure.introspection.attributes import (
    MODULES,
    PARAMETERS,
    Gone,
    bookkeeping_of,
    entries,
)
from heapwatch.measure.introspection.containers import array_bytes, is_object_array, items_in, length_of
from heapwatch.measure.introspection.exclusive_reads import Ask
from heapwatch.measure.introspection.layout import Kind, Layout, layout_of, namespace_of
from heapwatch.measure.introspection.names import qualified_type_name
from heapwatch.measure.introspection.reading import NAMED_KEYS, Step, namespace_parts, parts
from heapwatch.measure.introspection.roots import (
    Root,
    frame_roots,
    hosted_root,
    is_user_file,
    is_user_module,
    module_root,
    registry_roots,
    suspended_code,
    user_modules,
)
from heapwatch.measure.process.own_time import own_time
from heapwatch.measure.sizing.replay_buffers import ring_of
from heapwatch.measure.sizing.tensor_storage import has_graph

SAMPLES = (8, 3, 1)  # items visited of a container, by the number of containers around it
_DEEPEST = 14
_MOST_PENDING = 20_000
_MOST_VISITED = 20_000
_MOST_OF_ROOT = 5_000  # found from one root before the next has its turn
_MOST_COUNTED = 20_000
_MOST_KNOWN = 3000
_MOST_ANCHORS = 3000
_MOST_PLACES = 8  # objects read for one path
_MOST_WORLDS = 8
_LARGE = 65_536  # bytes from which an array or a text is followed
_TO_ITEMS = frozenset(("item", "key", "value", "element"))
_LISTED: tuple[Kind, ...] = ("list", "deque", "dict", "set", "cache", "programs", "frame_table", "raw")
_CLASS_BOOKKEEPING = frozenset(
    ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__slots__", "__mro_entries__",
     "__parameters__", "__orig_bases__", "__dataclass_fields__", "__abstractmethods__", "_abc_impl",
     "__match_args__", "__firstlineno__", "__static_attributes__", "__annotate__")
)  # fmt: skip
_SKIPPED_MODULES = ("heapwatch", "typing", "inspect", "re", "enum", "ast", "importlib", "_frozen_importlib",
                    "_frozen_importlib_external", "zipimport", "abc", "dis", "ctypes", "pathlib",
                    "IPython", "ipykernel", "traitlets")  # fmt: skip
# Where IPython keeps results and inputs, by the name that people know, and its other names for them.
_IPYTHONS = {"_oh": "Out", "_ih": "In"}
_ALSO_IPYTHONS = re.compile(r"_+|_i*\d*|_dh")


class Inventory:
    """Finds containers and reads their lengths, each in slices of a given CPU time.

    Args:
        clock: monotonic seconds.
        spent: CPU seconds of the calling thread.
        extra_roots: returns further roots; called in each round.
        ask: runs a read in the thread that may do it.

    Attributes:
        known: containers by path.
        lengths: reads them.
        rounds: number of complete walks through the program's objects.
        newest_round: the number of rounds that were complete when a new container was last found.
        visited: number of objects visited in the last round.
        worlds: places of Box2D worlds, by path.
        anchors: path by id of the objects that are reached without a step to an item. They have a place of
            their own, so they do not count for the items that refer to them.

    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        spent: Callable[[], float] = own_time,
        extra_roots: Callable[[], list[Root]] = list,
        ask: Ask = lambda read: read(),
    ) -> None:
        self.known: dict[str, KnownContainer] = {}
        self.lengths = Lengths(self.known, clock, spent, ask)
        self.worlds: dict[str, list[Place]] = {}
        self.rounds = self.newest_round = 0
        self.visited = 0
        self.anchors: dict[int, str] = {}
        self._clock = clock
        self._spent = spent
        self._extra_roots = extra_roots
        self._roots: deque[list[tuple[Place, str]]] = deque()
        self._pending: deque[tuple[Place, str]] = deque()  # of the present root
        self._again: deque[tuple[Place, str]] = deque()  # further places of a path that is pending
        self._later: deque[tuple[Place, str]] = deque()  # what is left of a root that has taken enough time
        self._paths: set[str] = set()
        self._walking = False
        self._before_root = 0
        self._entries: dict[int, int] = {}
        self._seen: set[int] = set()
        self._anchors: dict[int, str] = {}
        self._round_places: dict[str, list[Place]] = {}
        self._round_worlds: dict[str, list[Place]] = {}
        self._round_multiplicity: dict[str, float] = {}

    def discover(self, seconds: float) -> bool:
        """Look for containers for this many CPU seconds; True when a round is complete."""
        until = self._spent() + seconds
        if not self._walking:
            self._begin()
        memory: dict[Place | str, Any] = {}
        visited = 0
        while len(self._seen) <= _MOST_VISITED and self._next_root():
            place, path = self._pending.popleft()
            memory = _above(place, memory)
            with suppress(Gone, RuntimeError):
                self._visit(place, path, memory)
            visited += 1
            if not visited & 7 and self._spent() > until:
                return False
        self._complete()
        return True

    def _next_root(self) -> bool:
        """Go to the next root once all objects of this one, or enough, are visited; False at the end.

        One object of each path comes first: hundreds of alike ones tell no more than the first.
        """
        if not self._pending:
            self._pending, self._again = self._again, self._pending
        if self._pending and len(self._seen) - self._before_root < _MOST_OF_ROOT:
            return True
        self._later += chain(self._pending, self._again)
        self._pending.clear()
        self._again.clear()
        self._before_root = len(self._seen)
        while self._roots and not self._pending:
            self._pending += self._roots.popleft()
        if not self._pending:
            self._pending, self._later = self._later, self._pending
        return bool(self._pending)

    def places_of(self, container: KnownContainer) -> Iterator[tuple[Any, Layout]]:
        """The objects at a path with their layouts. The caller must not keep them."""
        for place in container.places:
            if (obj := place.seek({})) is not None:
                yield obj, layout_of(type(obj))

    def ids(self) -> set[int]:
        """Ids of all known containers and of the objects on the paths to them."""
        ids: set[int] = set(self.anchors)
        memory: dict[Place | str, Any] = {}
        for container in list(self.known.values()):
            ids.update(id(place.seek(memory)) for place in container.places)
        return ids

    def _begin(self) -> None:
        self._walking = True
        self._seen = set()
        self._anchors = {}
        self._round_places = {}
        self._round_worlds = {}
        self._round_multiplicity = {}
        lasting = [module_root(name) for name in sorted(user_modules(), key=lambda name: name != "__main__")]
        lasting += [*self._extra_roots(), hosted_root()]
        waiting = chain(self._pending, self._again, self._later, *self._roots)
        unvisited = list(islice(waiting, _MOST_PENDING))
        for queue in (self._pending, self._again, self._later):
            queue.clear()
        groups = [lasting, *([root] for root in frame_roots()), registry_roots()]
        self._roots = deque(
            [unvisited, *([(Place(None, None, root, 1.0), root.label) for root in group] for group in groups)]
        )

    def _complete(self) -> None:
        self._walking = False
        self.rounds += 1
        self.visited = len(self._seen)
        self.anchors, self._anchors = self._anchors, {}
        self._seen = set()
        self._paths = set()
        for path, places in self._round_places.items():
            if (container := self.known.get(path)) is not None:
                container.places = places
                container.stand_for(self._round_multiplicity[path])
        stale = [path for path in self.known if path not in self._round_places]
        self._rename(stale)
        if len(self.known) > _MOST_KNOWN:
            stale = sorted(
                (path for path in stale if path in self.known),
                key=lambda path: self.known[path].items.growth().total,
            )
            for path in stale[: len(self.known) - _MOST_KNOWN]:
                del self.known[path]

    def _rename(self, stale: list[str]) -> None:
        """Drop stale paths to containers that this walk has found under other paths."""
        walked = filter(None, map(self.known.get, self._round_places))
        by_identity = {container.identity: container for container in walked}
        for path in stale:
            previous = self.known[path]
            current = by_identity.get(previous.identity)
            if current is None or current.kind != previous.kind:
                continue
            if len(current.items.since(float("-inf"))) < len(previous.items.since(float("-inf"))):
                previous.path, previous.places = current.path, current.places
                self.known[current.path] = previous
            del self.known[path]

    def _visit(self, place: Place, path: str, memory: dict[Place | str, Any]) -> None:
        obj = place.find(memory)
        cls = type(obj)
        layout = layout_of(cls)
        if place.root is not None and place.root.namespace:
            self._namespace(obj, place, path)
            return
        if layout.kind == "class":
            if is_user_class(obj):
                for name, value in list(namespace_of(obj).items()):
                    if type(name) is str and name not in _CLASS_BOOKKEEPING:
                        self._push(value, place, Step("class", name, f".{name}"), path)
            return
        if layout.kind == "generator" and (code := suspended_code(obj)) is not None:
            path = f"{code.co_name}()"  # as of a running function, wherever the coroutine is kept
        self._note(obj, layout, place, path)
        if layout.name == "b2World" and layout.module.partition(".")[0] == "Box2D":
            self._note_world(place, path)
        children = list(parts(obj, layout, _samples(place)))
        if layout.kind == "object":
            named = {str(step.key): part for step, part in children if step.how == "name"}
            if ring_of(named) is not None:
                self._remember(path, "ring", layout, place, obj)
        books = bookkeeping_of(layout)
        if books:
            children = self._without_books(obj, children, books, place, path)
        length = items_in(obj, layout) or 0
        sampled = sum(step.how in _TO_ITEMS for step, _ in children)
        weight = place.weight * max(1.0, length / sampled if sampled else 1.0)
        for step, part in children:
            self._push(part, place, step, path, weight if step.label == "[*]" else place.weight)
        if layout.kind == "object" and is_user_module(layout.module):
            self._push(cls, place, Step("type", "", ""), qualified_type_name(layout), full=True)

    def _without_books(
        self, obj: Any, children: list[tuple[Step, Any]], books: frozenset[str], place: Place, path: str
    ) -> list[tuple[Step, Any]]:
        """The parts of an object without a library's bookkeeping, unless that has grown since the last walk.

        The modules of a torch module are pushed under the names that they have in code.
        """
        bookkeeping = {str(step.key): part for step, part in children if step.key in books}
        count = entries(bookkeeping, books)
        previous = self._entries.get(id(obj), count)
        if len(self._entries) < _MOST_COUNTED:
            self._entries[id(obj)] = count
        if count > previous or any(f"{path}.{name}" in self.known for name in bookkeeping):
            return children
        parameters, modules = _as_dict(bookkeeping.get(PARAMETERS)), _as_dict(bookkeeping.get(MODULES))
        for parameter in list(dict.values(parameters)):
            if len(self._anchors) < _MOST_ANCHORS:
                self._anchors[id(parameter)] = path
        if dict.__len__(modules):
            within = Place(place, Step("name", MODULES, ""), None, place.weight)
            for step, part in list(parts(modules, layout_of(type(modules)), _samples(place))):
                named = str(step.key).isidentifier()
                self._push(part, within, step._replace(label=f".{step.key}" if named else "[*]"), path)
        return [(step, part) for step, part in children if step.key not in books]

    def _namespace(self, namespace: dict[str, Any], place: Place, path: str) -> None:
        of_ipython = path == "" and "IPython" in sys.modules
        for step, part in list(namespace_parts(namespace)):
            name = str(step.key)
            if of_ipython and name in _IPYTHONS:
                self._push(part, place, step, _IPYTHONS[name], full=True)
            elif not ((name[:2] == name[-2:] == "__") or (of_ipython and _ALSO_IPYTHONS.fullmatch(name))):
                self._push(part, place, step, f"{path}{step.label}".removeprefix("."), full=True)

    def _push(
        self, obj: Any, place: Place, step: Step, path: str, weight: float = 1.0, full: bool = False
    ) -> None:
        layout = layout_of(type(obj))
        kind = layout.kind
        if kind in ("atom", "module"):
            return
        sized = kind in SIZED and not is_object_array(obj)
        if sized:
            if kind == "tensor" and place.item_steps == 0 and has_graph(obj):
                graph = Place(place, step, None, weight)
                self._remember(path if full else path + step.label, "graph", layout, graph, obj)
                return
            if (array_bytes(obj, layout) or 0) < _LARGE:
                return
        elif id(obj) in self._seen:
            return
        if kind == "function" and not is_user_file(obj.__code__.co_filename):
            return
        if kind == "object" and layout.module.partition(".")[0] in _SKIPPED_MODULES:
            return
        if layout.name == "Manager" and layout.module == "logging" and place.parent is not None:
            return  # every logger leads to all others
        label = path if full else path + step.label
        self._seen.add(id(obj))
        below = Place(place, step, None, weight)
        if not below.is_users and kind == "object" and _is_users(layout):
            below.is_users, label = True, layout.name  # what leads to it are names of a library
        if below.item_steps == 0 and len(self._anchors) < _MOST_ANCHORS:
            self._anchors[id(obj)] = label
        if sized:
            if layout.name != "Parameter":
                self._note(obj, layout, below, label)
        elif below.depth <= _DEEPEST and len(self._pending) + len(self._again) < _MOST_PENDING:
            (self._again if label in self._paths else self._pending).append((below, label))
            self._paths.add(label)

    def _note_world(self, place: Place, path: str) -> None:
        if path in self.worlds or len(self.worlds) < _MOST_WORLDS:
            places = self.worlds[path] = self._round_worlds.setdefault(path, [])
            if len(places) < _MOST_PLACES:
                places.append(place)

    def _note(self, obj: Any, layout: Layout, place: Place, path: str) -> None:
        if is_object_array(obj):
            self._remember(path, "objects", layout, place, obj)
        elif layout.kind in _LISTED or (layout.kind in SIZED and (array_bytes(obj, layout) or 0) >= _LARGE):
            self._remember(path, layout.kind, layout, place, obj)

    def _remember(self, path: str, kind: KnownKind, layout: Layout, place: Place, obj: Any) -> None:
        if not path:
            return
        container = self.known.get(path)
        if container is None:
            if len(self.known) >= 2 * _MOST_KNOWN:
                return
            now = self._clock()
            container = self.known[path] = KnownContainer(path, kind, layout.name, now)
            length = length_of(obj, layout) if kind in _LISTED else None
            if length is not None:  # to follow the path to it again would cost far more
                container.items.add(now, length)
                container.places_read = 1
                container.due = now + SHORTEST_INTERVAL
            self.newest_round = self.rounds
        if path not in self._round_places:
            self._round_places[path] = []
            self._round_multiplicity[path] = 0.0
            container.identity = id(obj)
        places = self._round_places[path]
        # A level is the mean of all places, so those of the last walk count until this one is complete.
        if not container.places or container.misses:
            container.places = places
        self._round_multiplicity[path] += place.weight
        # All values of a small dict are read, since those under keys that may not be shown have one path. One
        # graph for each path is enough: those of a rollout's states contain one another.
        by_key = place.step is not None and place.step.how == "key"
        if len(places) < (1 if kind == "graph" else NAMED_KEYS if by_key else _MOST_PLACES):
            places.append(place)


def _samples(place: Place) -> int:
    """How many items are visited of a container at a place."""
    return SAMPLES[min(place.item_steps, len(SAMPLES) - 1)]


def _above(place: Place, memory: dict[Place | str, Any]) -> dict[Place | str, Any]:
    """The objects on the path to a place, of those found before.

    No root is among them: it may be a copy of local variables, which would keep all of them alive.
    """
    above: dict[Place | str, Any] = {}
    parent = place.parent
    while parent is not None and parent.parent is not None:
        if parent in memory:
            above[parent] = memory[parent]
        parent = parent.parent
    return above


def _as_dict(part: Any) -> dict[Any, Any]:
    """A dict, or one of a subclass, whose own methods may do more than read; empty for anything else."""
    return part if layout_of(type(part)).kind == "dict" else {}


def _is_users(layout: Layout) -> bool:
    """Whether a class is the user's; one that was pickled by value may name a module that is not here."""
    if is_user_module(layout.module) or layout.module in sys.modules:
        return is_user_module(layout.module)
    values = chain.from_iterable(list(namespace_of(base).values()) for base in layout.mro[:-1])
    functions = [value for value in values if type(value) is FunctionType]
    return any(is_user_file(function.__code__.co_filename) for function in functions)
