"""Snapshots of what a notebook holds, and what has grown between two of them.

Every byte counts once: for the variables, in the order of their definition, then for what IPython keeps. So
the bytes of `Out[12]` are those that are freed when IPython drops it.
"""

from __future__ import annotations

import gc
import math
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from heapwatch.explain.describe import Describer
from heapwatch.explain.inventory import Inventory
from heapwatch.explain.places import KnownContainer
from heapwatch.explain.remedies import DROP_RESULTS
from heapwatch.explain.sites import Site
from heapwatch.explain.weigh import weigh
from heapwatch.measure.gpu import allow_capture
from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.introspection.names import type_of
from heapwatch.measure.introspection.roots import OWN_THREADS, Root, running_code
from heapwatch.measure.process.memory import ResidentMemory
from heapwatch.measure.sizing.sampling import ContainerChanged
from heapwatch.measure.sizing.traversal import OutOfTime, Walk

T = TypeVar("T")

LEAST_BYTES = 50_000  # less is not worth a line
_ERRORS = 2.0  # a difference between two estimates counts from so many standard errors on
_SEARCH_SECONDS = 10.0
_DEADLINE_SECONDS = 60.0
_MOST_WEIGHED = 20
_WEIGH_SECONDS = 0.2
_EXPLAINS = 0.5  # share of the growth of a variable from which paths in it are named in its place
_NOTED = 0.1
_SAMPLES = 32
_HOLDERS_SECONDS = 3.0  # CPU time for all names; the notebook waits meanwhile
_DROP_INPUTS = "`%reset -f in`"
_DROP_ERROR = "run `1/0`: the next error takes its place"


class Holder(NamedTuple):
    """A name, as `agent` or `Out[12]`, and the bytes that it holds, without those of the names before it.

    `bytes` are on the heap, on a GPU and in shared memory; `error` is their standard error, as they are an
    estimate for long containers. `remedy` is how to drop it in IPython; None for a variable.
    """

    name: str
    type: str
    bytes: int
    error: float
    remedy: str | None = None


class Grown(NamedTuple):
    """Something that has grown, with its growth in bytes, and in items if they are counted.

    `path` is as written in a cell, `site` the line of a function that fills it.
    """

    path: str
    about: str
    bytes: float
    items: float | None = None
    site: Site | None = None
    remedy: str | None = None


@dataclass(frozen=True)
class Snapshot:
    """What is held at one time: `resident` bytes by the process, and bytes by name.

    `levels` are the items of each container by path, or its bytes where it is an array or a text.
    """

    resident: int
    holders: dict[str, Holder] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    unmeasured: tuple[str, ...] = ()


class Notebook:
    """Reads a notebook's objects when it is asked to, and does nothing in between."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._taken = 0
        self._memory = ResidentMemory()
        self._inventory = Inventory(lambda: float(self._taken), lambda: 0.0)
        self._describer = Describer(self._inventory)

    def snapshot(self) -> Snapshot:
        """Collect garbage, and read what every name and every container holds."""
        if gc.isenabled():
            gc.collect()
        return _in_a_thread(self._snapshot)

    def grown(self, before: Snapshot, now: Snapshot) -> list[Grown]:
        """What holds more now than before, most first; `now` is the newest snapshot."""
        return _in_a_thread(lambda: self._grown(before, now))

    def _snapshot(self) -> Snapshot:
        self._taken += 1
        self._inventory.discover(_SEARCH_SECONDS)
        for known in list(self._inventory.known.values()):
            known.due = 0.0
        self._inventory.lengths.read(_SEARCH_SECONDS)
        found, unmeasured = _holders(self._shell)
        levels = {known.path: _level(known) for known in self._inventory.known.values() if _is_read(known)}
        return Snapshot(self._memory.read(), {one.name: one for one in found}, levels, tuple(unmeasured))

    def _grown(self, before: Snapshot, now: Snapshot) -> list[Grown]:
        paths = list(self._paths(before))
        found: list[Grown] = []
        for holder in now.holders.values():
            inside = [one for one in paths if _is_inside(one.path, holder.name)]
            paths = [one for one in paths if one not in inside]
            if more := _more(before.holders.get(holder.name), holder):
                found += _named(inside, more) or [_whole(holder, inside, more)]
        outside = [one for one in paths if one.bytes >= LEAST_BYTES]
        return sorted(found + outside, key=lambda one: -one.bytes)

    def _paths(self, before: Snapshot) -> Iterator[Grown]:
        """The containers that have grown, none inside another one of them."""
        growing = list(self._growing(before))
        # What a container weighs includes all that its items hold.
        parents = tuple(f"{known.path}[*]" for _, known in growing if not known.in_bytes)
        growing = [one for one in growing if not one[1].path.startswith(parents)]
        growing.sort(key=lambda one: (not one[1].in_bytes, -one[0]))
        weighed = [(self._weighed(known, more), more, known) for more, known in growing[:_MOST_WEIGHED]]
        taken: list[str] = []
        for held, more, known in sorted(weighed, key=lambda one: (-one[0], len(one[2].path))):
            if held and not any(_is_inside(known.path, path) for path in taken):
                taken.append(known.path)
                yield self._described(known, held, more, is_new=known.path not in before.levels)

    def _growing(self, before: Snapshot) -> Iterator[tuple[float, KnownContainer]]:
        """Containers with more items, or bytes, than before, and how many; another name is not more."""
        running = set(map(id, running_code()))
        present = [known for known in self._inventory.known.values() if _is_read(known)]
        seen = {known.identity for known in present if known.path in before.levels}
        for known in present:
            more = _level(known) - before.levels.get(known.path, 0.0)
            again = known.path not in before.levels and known.identity in seen
            seen.add(known.identity)
            if more > 0 and not again and self._is_ours(known, running):
                yield more, known

    def _is_ours(self, known: KnownContainer, running: set[int]) -> bool:
        """Whether it is not IPython's: these are among the holders, and its running functions end."""
        at, root = known.places[0], _root(known)
        name: object = None
        while at.parent is not None:
            name = None if at.step is None else at.step.key
            at = at.parent
        if root.frame_code is not None:
            return root.frame_code in running
        return not root.namespace or name not in self._shell.user_ns_hidden

    def _weighed(self, known: KnownContainer, more: float) -> float:
        """The bytes by which a container has grown; 0 where they cannot be measured."""
        if known.in_bytes:
            return more
        weigh(known, self._inventory, float(self._taken), _WEIGH_SECONDS)
        return (known.held.last or 0.0) * more / _level(known)

    def _described(self, known: KnownContainer, held: float, more: float, *, is_new: bool) -> Grown:
        growth = known.items.growth(float("-inf"))
        one = self._describer.describe_all([(known, growth)])[0]
        about = " of ".join(filter(None, (known.type_name, one.traits.item_type)))
        items = None if known.in_bytes else more
        # What a cell has just bound to a name is meant to be there.
        meant = is_new and _root(known).name == "module __main__"
        remedy = None if meant and not (one.traits.graph or one.traits.view) else one.remedy
        return Grown(known.path, about, held, items, one.site, remedy)


def _named(inside: Sequence[Grown], more: float) -> list[Grown]:
    """The paths that explain by how much more a variable holds; empty where they do not."""
    named = [one for one in inside if one.bytes >= _NOTED * more]
    return named if sum(one.bytes for one in named) >= _EXPLAINS * more else []


def _whole(holder: Holder, inside: Sequence[Grown], more: float) -> Grown:
    """A variable as a whole, with what is known of it as a container."""
    same = next((one for one in inside if one.path == holder.name), None)
    return (
        Grown(holder.name, holder.type, more, remedy=holder.remedy)
        if same is None
        else same._replace(bytes=more)
    )


def _level(known: KnownContainer) -> float:
    return (known.items.last or 0.0) * known.multiplicity


def _is_read(known: KnownContainer) -> bool:
    return bool(known.places) and known.kind != "graph" and known.misses == 0 and _level(known) > 0


def _root(known: KnownContainer) -> Root:
    at = known.places[0]
    while at.parent is not None:
        at = at.parent
    assert at.root is not None
    return at.root


def _more(before: Holder | None, now: Holder) -> float:
    """The growth of what a name holds; 0 if that may be the error of the estimates."""
    was, error = (0.0, now.error) if before is None else (before.bytes, math.hypot(before.error, now.error))
    more = now.bytes - was
    return more if more >= max(LEAST_BYTES, _ERRORS * error) else 0.0


def _is_inside(path: str, of: str) -> bool:
    return path == of or path.startswith((f"{of}.", f"{of}["))


def _in_a_thread(work: Callable[[], T]) -> T:
    """Run `work` in another thread: the explainer leaves the functions of its own threads out.

    Raises:
        TimeoutError: an object could not be read.

    """
    done: Future[T] = Future()

    def run() -> None:
        allow_capture()
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name=f"{OWN_THREADS}snapshot", daemon=True).start()
    return done.result(timeout=_DEADLINE_SECONDS)


def largest(snapshot: Snapshot, count: int) -> Sequence[Holder]:
    """The names that hold most, most first."""
    held = sorted(snapshot.holders.values(), key=lambda one: -one.bytes)
    return [one for one in held[:count] if one.bytes >= LEAST_BYTES]


def _holders(shell: Any) -> tuple[list[Holder], list[str]]:
    """What each variable and each of IPython's own holders holds, and the names that took too long."""
    namespace = shell.user_ns
    variables = {name: obj for name, obj in list(namespace.items()) if name not in shell.user_ns_hidden}
    apart = [*map(id, (shell, namespace, shell.user_ns_hidden, namespace.get("_oh"), namespace.get("_ih")))]
    walk = Walk(_SAMPLES, _HOLDERS_SECONDS, [*apart, *map(id, variables.values())])
    found: list[Holder] = []
    unmeasured: list[str] = []
    seen: set[int] = set()
    for name, obj in variables.items():
        if id(obj) not in seen:
            seen.add(id(obj))
            _measure(walk, name, obj, None, found, unmeasured)
    for name, obj, remedy in _kept_by_ipython(shell):
        if not walk.has_counted(obj):
            _measure(walk, name, obj, remedy, found, unmeasured)
    return found, unmeasured


def _kept_by_ipython(shell: Any) -> Iterator[tuple[str, Any, str]]:
    """What IPython keeps of earlier cells: its name, the object, and how to drop it."""
    namespace = shell.user_ns
    results = namespace.get("_oh")
    if type(results) is dict:
        for number, obj in list(results.items()):
            if type(number) is int:
                yield f"Out[{number}]", obj, DROP_RESULTS
    for name in ("_", "__", "___"):  # without a cache of results these keep the last three
        if name in namespace:
            yield name, namespace[name], DROP_RESULTS
    if "_ih" in namespace:
        yield "In", list(namespace["_ih"]), _DROP_INPUTS
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if isinstance(error, BaseException):
        yield "the last error", error, _DROP_ERROR


def _measure(
    walk: Walk, name: str, obj: Any, remedy: str | None, found: list[Holder], unmeasured: list[str]
) -> None:
    layout = layout_of(type(obj))
    if layout.kind in ("atom", "module", "class") or layout.module.startswith("heapwatch."):
        return
    try:
        tally = walk.everything([obj], _SAMPLES)[0]
    except (OutOfTime, ContainerChanged, RuntimeError):
        unmeasured.append(name)
        return
    held = sum(tally.held.get(place, 0.0) for place in ("heap", "gpu", "shared"))
    found.append(Holder(name, type_of(obj), round(held), math.sqrt(tally.variance), remedy))
