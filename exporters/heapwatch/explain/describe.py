"""Describes what grows: its bound, the line that fills it, and what refers to it."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from heapwatch.explain.bounds import Limit, bound_by_keys, bound_of, emptying_of, is_cut_shorter, limits_of
from heapwatch.explain.candidate import Candidate, Emptying
from heapwatch.explain.census import GrowingType
from heapwatch.explain.findings import OUTSIDE, Finding, place_of
from heapwatch.explain.garbage import Garbage, Uncollected
from heapwatch.explain.inventory import Inventory
from heapwatch.explain.places import KnownContainer, Place
from heapwatch.explain.remedies import REMOVE, UNLINK, remedy_for, remedy_for_type
from heapwatch.explain.shared_files import FILES
from heapwatch.explain.sites import (
    Site,
    Use,
    are_read,
    code_of_class,
    function_at,
    lines_of,
    site_of,
    user_code,
    uses_of,
)
from heapwatch.explain.statements import Deed, Scope, is_read, statements_of
from heapwatch.explain.tracing import Tracer
from heapwatch.explain.weigh import newest_of, traits_of
from heapwatch.judge.level import FloorGrowth
from heapwatch.judge.memory import MemoryGrowth
from heapwatch.measure.introspection.containers import items_in
from heapwatch.measure.introspection.layout import CACHE_TYPE, Layout, layout_of
from heapwatch.measure.introspection.names import qualified_type_name
from heapwatch.measure.introspection.roots import (
    Root,
    calling_line,
    is_user_file,
    is_user_module,
    running_code,
)
from heapwatch.measure.process.own_time import own_time
from heapwatch.measure.sizing.replay_buffers import UNLIMITED

_MOST_HOLDERS = 6
_NOT_EXAMINED = "objects made while the collector is off, in cycles or not"
_MOST_KEPT = 200
_BOUND_SECONDS = 60.0  # between two searches for a bound among the program's other containers
_LEAST_PER_MINUTE = 10_000.0  # bytes; 14 MB in a day
_SEARCHING_SECONDS = 0.03  # for the search in the program's code, in one evaluation
_NAMING = ("name", "slot", "class", "closure", "default")  # steps
_REMOVERS = ("unlink", "remove", "rmtree")  # of segments the first
_STARTERS = ("Process", "Popen", "Pool", "ProcessPoolExecutor", "SubprocVecEnv", "AsyncVectorEnv")


class _Code(NamedTuple):
    """What the source does to a container, the limits that it sets, and the only line that adds items."""

    uses: Sequence[Use] = ()
    limits: Sequence[Limit] = ()
    site: Site | None = None


@dataclass
class _Searched:
    """The results of searches for the container at a path; None before a search."""

    code: _Code | None = None
    traced: Site | None = None  # where its items were seen to be made
    library: set[int] | None = None  # ids of the library code that may fill it
    callers: set[Site] = field(default_factory=set)  # of that code
    bound: int | None = None
    bound_due: float = 0.0


class Describer:
    """Describes growing containers and types. It searches the code once for each container.

    A search for which an evaluation has no time is left to the next evaluation.
    """

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._until = float("inf")
        self._searched: dict[str, _Searched] = {}
        self._only_lines: dict[tuple[str, ...], Site | None] = {}

    def _searched_of(self, path: str) -> _Searched:
        """The results for a path; of too many paths, the least recently used one is dropped."""
        searched = self._searched.pop(path, None) or _Searched()
        if len(self._searched) >= _MOST_KEPT:
            del self._searched[next(iter(self._searched))]
        self._searched[path] = searched
        return searched

    def describe_all(self, growing: Sequence[tuple[KnownContainer, FloorGrowth]]) -> list[Candidate]:
        """Describe growing containers; the most important come first.

        Until its code is searched, a container counts as cut to a length, which delays the verdict.
        """
        self._until = own_time() + _SEARCHING_SECONDS
        return [self.describe(container, growth, always=False) for container, growth in growing]

    def describe(self, container: KnownContainer, growth: FloorGrowth, *, always: bool = True) -> Candidate:
        """Describe one growing container; unless `always`, without its code if its growth may not matter.

        A framework has dozens of containers that grow by a few bytes, and searching their code takes long.
        """
        traits, place = traits_of(container, self._inventory), container.places[0]
        way, code = _way_to(place), None
        if always or traits.opaque or _may_matter(container, growth):
            code = self._code_of(container, place, way)
        if code is None:
            remedy = remedy_for(container, traits, container.capacity, way.library)
            return Candidate(container, growth, traits, container.capacity, emptied="trimmed", remedy=remedy)
        capacity, emptied = self._bound(container, growth, way.owner, code)
        traced = self._searched_of(container.path).traced
        site = traced or code.site or self._called_at(container, place, way.owner)
        candidate = Candidate(container, growth, traits, capacity, site, emptied, way.holders)
        remedy = remedy_for(container, traits, capacity, way.library, is_kept=candidate.bounded)
        if emptied == "whole" and capacity is None:
            line = next(use.site for use in code.uses if use.effect == "empties")
            remedy = f"empty it before it is too large, as at {place_of(line)}"
        return replace(candidate, remedy=remedy)

    def _bound(
        self, container: KnownContainer, growth: FloorGrowth, owner: Any, code: _Code
    ) -> tuple[int | None, Emptying]:
        """The bound of a container, and how the program removes items from it."""
        # A container that is cut only now and then is above its limit until then.
        items = growth.floor or container.items.last or 0.0
        capacity, emptied = container.capacity, emptying_of(code.uses, code.limits, owner, items)
        if container.kind == "graph":
            emptied = "never"
        elif capacity is None and container.kind != "ring" and emptied != "never":
            capacity = bound_of(owner, code.limits, items, container.bytes_each, growth)
            is_certain = capacity is not None and not is_cut_shorter(code.uses, code.limits, owner, items)
            emptied = "some" if emptied == "trimmed" and is_certain else emptied
        if capacity is None:
            capacity = self._bound_by_keys(container)
        return None if capacity is not None and capacity >= UNLIMITED else capacity, emptied

    def _bound_by_keys(self, container: KnownContainer) -> int | None:
        """See `bound_by_keys`; searched again once a dictionary has passed its bound."""
        now, searched = container.items.read_at, self._searched_of(container.path)
        is_passed = searched.bound is not None and (container.items.last or 0.0) > searched.bound
        if now >= searched.bound_due or is_passed:
            searched.bound = bound_by_keys(container, self._inventory)
            searched.bound_due = now + _BOUND_SECONDS
        return searched.bound

    def describe_type(self, growing: GrowingType, growth: FloorGrowth) -> Finding:
        """Make a finding of a growing type."""
        holders = growing.holders
        count = growing.counts.last or 0.0
        each = growing.each_bytes or 0.0
        return Finding(
            kind="type",
            path=None,
            type=growing.name,
            items=round(count),
            bytes=round(count * each) if each else None,
            items_per_minute=60 * growth.per_second,
            bytes_per_minute=60 * growth.per_second * each,
            site=self.made_at(growing.name),
            holders=(OUTSIDE,) if holders == () else holders or (),
            remedy=remedy_for_type(holders),
        )

    def made_at(self, type_name: str) -> Site | None:
        """The only line of the user's code that makes instances; None if there are several or none."""
        return self._only_line("loaded", type_name.rpartition(".")[2])

    def describe_segments(
        self, container: KnownContainer, growth: FloorGrowth, lines: set[Site]
    ) -> Candidate:
        """Describe segments or files of shared memory, which these lines have made."""
        codes, are_files = user_code(), container.type_name == FILES
        names = _REMOVERS if are_files else _REMOVERS[:1]
        removes = any(
            not are_read(name, codes, self._until) or lines_of("loaded", name, codes) for name in names
        )
        emptied: Emptying = "whole" if removes else "never"
        remedy = REMOVE if are_files else UNLINK
        return Candidate(container, growth, site=_only(lines), emptied=emptied, remedy=remedy)

    def processes_started(self) -> Site | None:
        """The only line of the user's code that starts processes; None if there are several or none."""
        return self._only_line("loaded", *_STARTERS)

    def hosted_filled_at(self) -> Site | None:
        """The only line of the user's code that adds to what may be the dict or the list of a manager."""
        codes = user_code()
        if not all(is_read(code) or (own_time() <= self._until and statements_of(code)) for code in codes):
            return None
        bound = [entry for code in codes for entry in statements_of(code).assigned.items()]
        names = {name for name, made in bound if made.kind == "call" and made.value in ("dict", "list")}
        return _only({use.site for name in names for use in uses_of(name, codes) if use.effect == "grows"})

    def describe_garbage(self, uncollected: Uncollected, levels: MemoryGrowth) -> list[Finding]:
        """Make a finding of the reference cycles that stay while the collector is switched off.

        Where their bytes cannot be measured, their share of the growth is that of the new objects. Where the
        objects cannot be examined, some of them may live: no cycles are claimed.
        """
        garbage, remedy = uncollected.latest, remedy_for_type(None)
        growth = uncollected.counts.growth(levels.startup_end)
        if growth.total <= 0 or (not growth.rising if garbage is None else not garbage.objects):
            return []
        if garbage is None:
            garbage, items, per_second = Garbage(0, 1.0, None, ()), uncollected.counts.last, growth.per_second
            what, remedy = _NOT_EXAMINED, "`gc.collect()` once: what it frees was in cycles"
        else:
            items, per_second = uncollected.garbage.last, uncollected.per_second(levels.startup_end)
            what = f"uncollected cycles of {', '.join(garbage.types)}"
        each, items_per_minute = garbage.each_bytes, 60 * per_second
        return [
            Finding(
                kind="type",
                path=None,
                type=what,
                items=round(items or 0.0),
                bytes=None if each is None else round((items or 0.0) * each),
                items_per_minute=items_per_minute,
                bytes_per_minute=levels.per_minute * garbage.share
                if each is None
                else min(levels.per_minute, items_per_minute * each),
                site=None if garbage.key is None else self.stored_at(garbage.key),
                holders=("reference cycles: the collector is switched off",) if garbage.objects else (),
                remedy=remedy,
                inferred=each is None,
            )
        ]

    def is_traceable(self, container: KnownContainer) -> bool:
        """Whether no single line is known to fill a container, and its new items can be looked at."""
        searched = self._searched_of(container.path)
        located = searched.traced or (searched.code and searched.code.site)
        return not located and container.counted and container.kind != "ring"

    def trace(self, container: KnownContainer, tracer: Tracer, interval: float) -> None:
        """Trace allocations until the container has grown, and keep the line that makes its items.

        `interval`: the usual time in seconds between two additions.
        """
        site = tracer.trace(
            container.path,
            functools.partial(_length, container, self._inventory),
            functools.partial(newest_of, container, self._inventory),
            interval,
        )
        if site is not None:
            line = site._replace(function=function_at(site, user_code()))
            self._searched_of(container.path).traced = line

    def _called_at(self, container: KnownContainer, place: Place, owner: Any) -> Site | None:
        """The one line of the user's code that has been seen to call the library which fills a container."""
        searched = self._searched_of(container.path)
        if searched.library is None:
            searched.library = _library_codes(place, owner)
        if searched.library and len(searched.callers) < 2 and own_time() <= self._until:
            line = calling_line(searched.library)
            searched.callers |= {Site(*line)} if line is not None else set()
        return _only(searched.callers)

    def stored_at(self, key: str) -> Site | None:
        """The only line of the user's code that stores under a name; None if there are several or none."""
        return self._only_line("assigned", key)

    def _only_line(self, deed: Deed, *names: str) -> Site | None:
        """The only line of the user's code that does this with one of these names; else None."""
        key = deed, *names
        if key in self._only_lines or len(self._only_lines) >= 2 * _MOST_KEPT:
            return self._only_lines.get(key)
        lines: set[Site] = set()
        for code in user_code():
            for name in names:
                if not are_read(name, [code], self._until):
                    return None
                lines.update(lines_of(deed, name, [code]))
            if len(lines) > 1:
                break
        self._only_lines[key] = _only(lines)
        return self._only_lines[key]

    def _code_of(self, container: KnownContainer, place: Place, way: _Way) -> _Code | None:
        """The code that uses a container; None if there is no time to search it."""
        result = self._searched_of(container.path)
        if result.code is not None:
            return result.code
        if container.kind == "cache":
            return _Code(site=_cached_function(place))
        name = way.name
        if name is None:
            return _Code()
        own, others = _codes(place, way.owner)
        codes = [*own, *others]
        uses: list[Use] = []
        searched = codes
        # A name such as `data` may mean something else in other code. Search the owner's class first, and the
        # same scope before any other.
        for searched, scope in ((own, way.scope), (codes, way.scope), (codes, "any")):
            if not are_read(name, searched, self._until):
                return None
            if container.kind == "graph":  # what is computed from its old value makes it longer
                deed: Deed = "changes" if place.step is not None and place.step.how == "key" else "rebinds"
                uses = [Use("grows", site) for site in lines_of(deed, name, searched, scope)]
            else:
                uses = uses_of(name, searched, scope, sequence=container.kind in ("list", "deque"))
            if any(use.effect == "grows" for use in uses):
                break
        emptying = [use.site for use in uses if use.effect == "empties"]
        uses = [use for use in uses if use.effect != "empties"]
        library = [site for site in emptying if not is_user_file(site.file)]  # where it may be set up, too
        emptying = [site for site in emptying if site not in library]
        for holder, holder_scope in way.above:  # its holder may be made anew
            if not are_read(holder, codes, self._until):
                return None
            emptying += lines_of("renews", holder, codes, holder_scope)
        called = self._called(emptying, codes, way.owner)
        if called is None:
            return None
        removing = {use.site.line for use in uses if use.effect == "shrinks"}
        limits = limits_of(name, searched, {use.site.line for use in uses}, removing)
        uses += [Use("empties", site) for site in called] + [Use("shrinks", site) for site in library]
        result.code = _Code(uses, limits, _site(uses, codes))
        return result.code

    def _called(self, sites: list[Site], codes: list[CodeType], owner: Any) -> list[Site] | None:
        """The lines whose function runs or is called; None if there is no time to search for it."""
        # Calls by a base class of a library, such as those of a callback, are not seen.
        if not sites or not all(
            is_user_module(layout_of(cls).module) for cls in layout_of(type(owner)).mro[:-1]
        ):
            return sites
        running = {site_of(code).function for code in running_code()}
        names = {site: site.function.rpartition(".")[2] for site in sites if site.function not in running}
        if not all(are_read(name, codes, self._until) for name in names.values()):
            return None
        return [
            site
            for site in sites
            if not names.get(site, "<").isidentifier() or lines_of("loaded", names[site], codes)
        ]


def _may_matter(container: KnownContainer, growth: FloorGrowth) -> bool:
    """Whether a container that can be measured has been, and grows by more than a few bytes."""
    is_measured = container.held.last is not None or container.in_bytes or container.weigh_failures
    return bool(is_measured) and not 0 < Candidate(container, growth).bytes_per_minute < _LEAST_PER_MINUTE


def _cached_function(place: Place) -> Site | None:
    """The first line of a cached function."""
    cached = place.seek({})
    # Another object may have its place by now, whose attributes may run code of the program.
    function = cached.__wrapped__ if type(cached) is CACHE_TYPE else None
    return site_of(function.__code__) if type(function) is FunctionType else None


def _length(container: KnownContainer, inventory: Inventory) -> float | None:
    total: float | None = None
    for obj, layout in inventory.places_of(container):
        total = (total or 0.0) + (items_in(obj, layout) or 0)
    return total


class _Way(NamedTuple):
    """How a container is reached.

    Attributes:
        name: the last name in its path; None if there is none.
        owner: the object that has this name.
        scope: of the name.
        library: the class of a library whose object owns the container, or a library's root; None if it is
            the user's.
        holders: what refers to the container, the nearest first, up to its root.
        above: the other names in its path, with their scopes.

    """

    name: str | None
    owner: Any
    scope: Scope
    library: str | None
    holders: tuple[str, ...]
    above: tuple[tuple[str, Scope], ...]


def _way_to(place: Place) -> _Way:
    memory: dict[Place | str, Any] = {}
    named: list[tuple[str, Any, Scope]] = []
    layouts: list[Layout] = []  # of the objects below the root, the nearest first, up to one that is gone
    is_whole, current = True, place
    while current.parent is not None:
        step, current = current.step, current.parent
        assert step is not None
        owner = current.seek(memory)
        if step.how in _NAMING:
            named.append((step.label.rpartition(".")[2], owner, _scope(current, step.how)))
        if current.parent is not None:
            is_whole = is_whole and owner is not None
            layouts += [layout_of(type(owner))] if is_whole else []
    holders = [qualified_type_name(layout) for layout in layouts if layout.kind != "cell"]
    if is_whole and current is not place:
        holders.append(_root_in_words(place.start))
    library = _library(layouts, place.start if is_whole else None)
    first: tuple[str | None, Any, Scope] = named[0] if named else (None, None, "any")
    above = tuple((name, scope) for name, _, scope in named[1:])
    return _Way(*first, library, tuple(holders[:_MOST_HOLDERS]), above)


def _library(layouts: Sequence[Layout], root: Root | None) -> str | None:
    owner = next((layout for layout in layouts if layout.kind == "object"), None)
    if owner is not None:
        is_library = owner.module != "builtins" and not is_user_module(owner.module)
        return qualified_type_name(owner) if is_library else None
    if root is None:
        return None
    if not root.frame_code:
        return root.label if root.name.startswith("registry ") else None
    return None if any(id(code) == root.frame_code for code in running_code()) else root.label


def _root_in_words(root: Root) -> str:
    if root.frame_code:
        return f"local variable of {root.label}"
    return f"global of {root.label or '__main__'}" if root.name.startswith("module ") else root.name


def _scope(parent: Place, how: str) -> Scope:
    if how in ("closure", "default"):
        return "local"
    root = parent.root
    if root is None or not root.namespace:
        return "attribute"
    return "local" if root.frame_code else "global"


def _codes(place: Place, owner: Any) -> tuple[list[CodeType], list[CodeType]]:
    """The code that may fill a container: of its owner's class or function, and other code of the user."""
    root = place.start
    if place.is_local:
        return [code for code in running_code() if id(code) == root.frame_code], []
    own: list[CodeType] = []
    if owner is not None:
        kind = layout_of(type(owner)).kind
        own = code_of_class(type(owner) if kind == "object" else owner) if kind in ("object", "class") else []
    known = set(map(id, own))
    return own, [code for code in user_code() if id(code) not in known]


def _library_codes(place: Place, owner: Any) -> set[int]:
    """Ids of library code: methods of a container's owner, and the function that it is local to."""
    root = place.start
    codes = {id(code) for code in _codes(place, owner)[0] if not is_user_file(code.co_filename)}
    if root.frame_code:
        codes |= {root.frame_code} - {id(code) for code in running_code()}
    return codes


def _site(uses: list[Use], codes: list[CodeType]) -> Site | None:
    """The only line that adds items; None if there are several or none."""
    grows = {use.site for use in uses if use.effect == "grows"}
    mine = {site for site in grows if is_user_file(site.file)}
    site = _only(mine or grows)
    if site is None or mine:
        return site
    callers = lines_of("loaded", site.function.rpartition(".")[2], codes)
    return _only([one for one in callers if is_user_file(one.file)])


def _only(lines: Collection[Site]) -> Site | None:
    return next(iter(lines)) if len(lines) == 1 else None
