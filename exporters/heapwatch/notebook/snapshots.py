"""Takes snapshots of the memory that a notebook holds, and compares two of them.

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

    `levels` are the items of each container by path, or its bytes where it is an array or a text. `modules`
    is the number of those imported.
    """

    resident: int
    holders: dict[str, Holder] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    unmeasured: tuple[str, ...] = ()
    modules: int = 0


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
        holders, unmeasured = _holders(self._shell)
        levels = {container.path: _level(container) for container in self._known() if _is_read(container)}
        by_name = {one.name: one for one in holders}
        return Snapshot(self._memory.read(), by_name, levels, tuple(unmeasured), len(sys.modules))

    def _known(self) -> list[KnownContainer]:
        return list(self._comparison.inventory.known.values())

    def _grown(self, before: Snapshot, now: Snapshot) -> list[Growing]:
        paths = list(self._paths(before))
        findings: list[Growing] = []
        for holder in now.holders.values():
            inside = [one for one in paths if is_inside(one.name, holder.name)]
            paths = [one for one in paths if one not in inside]
            if more := _more(before.holders.get(holder.name), holder):
                findings += _named(inside, more) or [_whole(holder, inside, more)]
            else:
                findings += [one for one in inside if one.graph]  # whose bytes cannot be measured
        outside = [one for one in paths if one.graph or (one.bytes or 0.0) >= LEAST_BYTES]
        return sorted(findings + outside, key=lambda one: -(one.bytes or 0.0))

    def _paths(self, before: Snapshot) -> Iterator[Growing]:
        """The containers that have grown, none inside another one of them."""
        growing = list(self._growing(before))
        # What a container weighs includes all that its items hold.
        parents = tuple(f"{container.path}[*]" for _, container in growing if not container.in_bytes)
        growing = [candidate for candidate in growing if not candidate[1].path.startswith(parents)]
        growing.sort(key=lambda candidate: (not candidate[1].in_bytes, -candidate[0]))
        increases = {container.path: increase for increase, container in growing[:MOST_WEIGHED]}
        candidates = [
            self._comparison.weighed(container, float("-inf"), _WEIGH_SECONDS)
            for _, container in growing[:MOST_WEIGHED]
        ]
        weighed = [
            (_bytes_of(candidate.known, increases[candidate.known.path]), candidate)
            for candidate in candidates
        ]
        for nbytes, candidate in foremost(weighed):
            container = candidate.known
            if nbytes or candidate.traits.graph:
                # What a cell has just bound to a name is meant to be there.
                is_new_name = (
                    container.path not in before.levels and _root(container).name == "module __main__"
                )
                finding = described(candidate, nbytes, increases[container.path])
                is_sure = candidate.traits.graph or candidate.traits.view
                yield replace(finding, remedy=None) if is_new_name and not is_sure else finding

    def _growing(self, before: Snapshot) -> Iterator[tuple[float, KnownContainer]]:
        """Containers with more items, or bytes, than before, and how many; another name is not more."""
        running = set(map(id, running_code()))
        containers = [container for container in self._known() if _is_read(container)]
        if len(sys.modules) > before.modules:  # an import fills registries of libraries, once
            containers = [one for one in containers if not _root(one).name.startswith("registry ")]
        identities = {container.identity for container in containers if container.path in before.levels}
        for container in containers:
            more = _level(container) - before.levels.get(container.path, 0.0)
            is_repeated = container.path not in before.levels and container.identity in identities
            identities.add(container.identity)
            if more > 0 and not is_repeated and self._is_ours(container, running):
                yield more, container

    def _is_ours(self, container: KnownContainer, running: set[int]) -> bool:
        """Whether it is not IPython's: these are among the holders, and its running functions end."""
        place, root = container.places[0], _root(container)
        name: object = None
        while place.parent is not None:
            name = None if place.step is None else place.step.key
            place = place.parent
        if root.frame_code is not None:
            return root.frame_code in running
        return not root.namespace or name not in self._shell.user_ns_hidden


def _bytes_of(container: KnownContainer, increase: float) -> float:
    """The bytes by which a container has grown; 0 where they cannot be measured."""
    return increase if container.in_bytes else (container.held.last or 0.0) * increase / _level(container)


def _named(inside: Sequence[Growing], more: float) -> list[Growing]:
    """The paths that explain by how much more a variable holds; empty where they do not."""
    named = [one for one in inside if (one.bytes or 0.0) >= _NOTED * more]
    return named if sum(one.bytes or 0.0 for one in named) >= _EXPLAINS * more else []


def _whole(holder: Holder, inside: Sequence[Growing], more: float) -> Growing:
    """A variable as a whole, with what is known of it as a container."""
    growing = Growing(holder.name, holder.type, remedy=holder.remedy)
    return replace(next((one for one in inside if one.name == holder.name), growing), bytes=more)


def _level(container: KnownContainer) -> float:
    return (container.items.last or 0.0) * container.multiplicity


def _is_read(container: KnownContainer) -> bool:
    return (
        bool(container.places)
        and container.kind != "graph"
        and container.misses == 0
        and _level(container) > 0
    )


def _root(container: KnownContainer) -> Root:
    place = container.places[0]
    while place.parent is not None:
        place = place.parent
    assert place.root is not None
    return place.root


def _more(before: Holder | None, now: Holder) -> float:
    """The growth of what a name holds; 0 if that may be the error of the estimates."""
    previous, error = (
        (0.0, now.error) if before is None else (before.bytes, math.hypot(before.error, now.error))
    )
    increase = now.bytes - previous
    return increase if increase >= max(LEAST_BYTES, _ERRORS * error) else 0.0


def largest(snapshot: Snapshot, count: int) -> Sequence[Holder]:
    """The names that hold most, most first."""
    holders = sorted(snapshot.holders.values(), key=lambda one: -one.bytes)
    return [one for one in holders[:count] if one.bytes >= LEAST_BYTES]


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
    held = sum(tally.bytes_by_place.get(place, 0.0) for place in ("heap", "gpu", "shared"))
    found.append(Holder(name, type_of(obj), round(held), math.sqrt(tally.variance), remedy))
