"""Paths to objects, and containers by their path with what was read of them."""

from __future__ import annotations

import gc
from typing import Any, Literal

from heapwatch.explain.series import LevelSeries
from heapwatch.measure.introspection.layout import Kind, layout_of
from heapwatch.measure.introspection.reading import Step, follow
from heapwatch.measure.introspection.roots import Root

SHORTEST_INTERVAL = 1.0  # seconds between two readings of a container
SIZED: tuple[Kind, ...] = ("array", "tensor", "text")  # of which bytes are counted

# Beside the kinds of classes: a buffer object with its arrays, an autograd graph, an array of objects.
KnownKind = Kind | Literal["ring", "graph", "objects"]


class Place:
    """The path to an object: a root, or a step from another place.

    Attributes:
        depth: number of steps from the root.
        item_steps: how many of them lead to an item of a container.
        weight: number of objects that it stands for, since only some items of a container are visited.

    """

    __slots__ = ("depth", "item_steps", "parent", "root", "step", "weight")

    def __init__(self, parent: Place | None, step: Step | None, root: Root | None, weight: float) -> None:
        self.parent = parent
        self.step = step
        self.root = root
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.item_steps: int = (
            0 if parent is None else parent.item_steps + (step is not None and step.label == "[*]")
        )
        self.weight = weight

    @property
    def is_local(self) -> bool:
        """Whether it is a local variable of a running function."""
        root = None if self.parent is None else self.parent.root
        return root is not None and root.frame_code is not None

    def find(self, memory: dict[Place | str, Any]) -> Any:
        """Follow the path to its object.

        Args:
            memory: objects already found in this pass, by place or root name; extended, but not with arrays
                and tensors: `ndarray.resize` fails in the program while somebody else refers to the array.

        Raises:
            Gone: nothing is at this path any more.

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
        if gc.is_tracked(found) and layout_of(type(found)).kind not in SIZED:
            memory[self] = found
        return found


class KnownContainer:
    """A container, or all containers with the same path, and what was read of them.

    Attributes:
        path: as written in code; `[*]` stands for every item.
        items: the length over time, or the mean of several; bytes for arrays and texts; for graphs see below.
        multiplicity: number of containers with this path.
        held: the bytes of all of them over time, measured when there were `weighed_items` items.
        weighing_due: when it may be measured again, after `weigh_failures` measurements that took too long.
        newest: for a graph, the numbers of its newest operation at the last two readings.
        identity: id of the container; of the first one, if several have this path.

    For an autograd graph `items` is the time in seconds for which each reading found operations of the last
    reading among newer ones. It is 0 for a graph that each step replaces, however large it is.

    """

    __slots__ = (
        "capacity", "due", "held", "identity", "interval", "items", "kind", "misses", "multiplicity",
        "newest", "path", "places", "type_name", "weigh_failures", "weighed_items", "weighing_due",
    )  # fmt: skip

    def __init__(self, path: str, kind: KnownKind, type_name: str, due: float = 0.0) -> None:
        self.path = path
        self.kind: KnownKind = kind
        self.type_name = type_name
        self.places: list[Place] = []
        self.items = LevelSeries()
        self.held = LevelSeries()
        self.multiplicity = 1.0
        self.capacity: int | None = None
        self.interval = SHORTEST_INTERVAL
        self.due = due
        self.misses = 0
        self.weighed_items = 0.0
        self.weigh_failures = 0
        self.weighing_due = float("-inf")
        self.newest = (-1, -1)
        self.identity = 0

    def take_over(self, other: KnownContainer) -> None:
        """Continue the readings of the same container under another path."""
        self.items, self.held, self.newest = other.items, other.held, other.newest
        self.weighed_items, self.weighing_due = other.weighed_items, other.weighing_due
        self.weigh_failures = other.weigh_failures

    @property
    def in_bytes(self) -> bool:
        """Whether `items` are bytes."""
        return self.kind in SIZED

    @property
    def counted(self) -> bool:
        """Whether `items` are items."""
        return not self.in_bytes and self.kind != "graph"
