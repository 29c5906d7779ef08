"""Snapshots of what a notebook holds, and what has grown between two of them.

Every byte counts once: for the variables, in the order of their definition, then for what IPython keeps. So
the bytes of `Out[12]` are those that are freed when IPython drops it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from heapwatch.explain.comparison import (
    MOST_WEIGHED,
    Comparison,
    Growing,
    described,
    foremost,
    read_apart,
)
from heapwatch.explain.places import KnownContainer
from heapwatch.explain.remedies import DROP_RESULTS
from heapwatch.explain.weigh import is_inside
from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.introspection.names import type_of
from heapwatch.measure.introspection.roots import Root, running_code
from heapwatch.measure.process.memory import ResidentMemory
from heapwatch.measure.sizing.sampling import ContainerChanged
from heapwatch.measure.sizing.traversal import OutOfTime, Walk

LEAST_BYTES = 50_000  # less is not worth a line
_ERRORS = 2.0  # a difference between two estimates counts from so many standard errors on
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
        self._memory = ResidentMemory()
        self._comparison = Comparison()

    def snapshot(self) -> Snapshot:
        """Collect garbage, and read what every name and every container holds."""
        return read_apart(self._snapshot)

    def grown(self, before: Snapshot, now: Snapshot) -> list[Growing]:
        """What holds more now than before, most first; `now` is the newest snapshot."""
        return read_apart(lambda: self._grown(before, now))

    def _snapshot(self) -> Snapshot:
        self._comparison.read()
        found, unmeasured = _holders(self._shell)
        levels = {known.path: _level(known) for known in self._known() if _is_read(known)}
        return Snapshot(self._memory.read(), {one.name: one for one in found}, levels, tuple(unmeasured))

    def _known(self) -> list[KnownContainer]:
        return list(self._comparison.inventory.known.values())

    def _grown(self, before: Snapshot, now: Snapshot) -> list[Growing]:
        paths = list(self._paths(before))
        found: list[Growing] = []
        for holder in now.holders.values():
            inside = [one for one in paths if is_inside(one.name, holder.name)]
            paths = [one for one in paths if one not in inside]
            if more := _more(before.holders.get(holder.name), holder):
                found += _named(inside, more) or [_whole(holder, inside, more)]
            else:
                found += [one for one in inside if one.graph]  # whose bytes cannot be measured
        outside = [one for one in paths if one.graph or (one.bytes or 0.0) >= LEAST_BYTES]
        return sorted(found + outside, key=lambda one: -(one.bytes or 0.0))

    def _paths(self, before: Snapshot) -> Iterator[Growing]:
        """The containers that have grown, none inside another one of them."""
        growing = list(self._growing(before))
        # What a container weighs includes all that its items hold.
        parents = tuple(f"{known.path}[*]" for _, known in growing if not known.in_bytes)
        growing = [one for one in growing if not one[1].path.startswith(parents)]
        growing.sort(key=lambda one: (not one[1].in_bytes, -one[0]))
        more = {known.path: more for more, known in growing[:MOST_WEIGHED]}
        candidates = [
            self._comparison.weighed(known, float("-inf"), _WEIGH_SECONDS)
            for _, known in growing[:MOST_WEIGHED]
        ]
        weighed = [(_bytes_of(one.known, more[one.known.path]), one) for one in candidates]
        for held, one in foremost(weighed):
            known = one.known
            if held or one.traits.graph:
                # What a cell has just bound to a name is meant to be there.
                meant = known.path not in before.levels and _root(known).name == "module __main__"
                found = described(one, held, more[known.path])
                is_sure = one.traits.graph or one.traits.view
                yield replace(found, remedy=None) if meant and not is_sure else found

    def _growing(self, before: Snapshot) -> Iterator[tuple[float, KnownContainer]]:
        """Containers with more items, or bytes, than before, and how many; another name is not more."""
        running = set(map(id, running_code()))
        present = [known for known in self._known() if _is_read(known)]
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


def _bytes_of(known: KnownContainer, more: float) -> float:
    """The bytes by which a container has grown; 0 where they cannot be measured."""
    return more if known.in_bytes else (known.held.last or 0.0) * more / _level(known)


def _named(inside: Sequence[Growing], more: float) -> list[Growing]:
    """The paths that explain by how much more a variable holds; empty where they do not."""
    named = [one for one in inside if (one.bytes or 0.0) >= _NOTED * more]
    return named if sum(one.bytes or 0.0 for one in named) >= _EXPLAINS * more else []


def _whole(holder: Holder, inside: Sequence[Growing], more: float) -> Growing:
    """A variable as a whole, with what is known of it as a container."""
    whole = Growing(holder.name, holder.type, remedy=holder.remedy)
    return replace(next((one for one in inside if one.name == holder.name), whole), bytes=more)


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
