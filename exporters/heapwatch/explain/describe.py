"""Everything that can be said about what grows: its bound, where it grows, who holds it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import islice
from types import CodeType
from typing import Any

from heapwatch.explain.census import GrowingType, LongContainer
from heapwatch.explain.findings import Finding
from heapwatch.explain.inventory import Inventory, Known, Place
from heapwatch.explain.judge import Candidate, Emptying
from heapwatch.explain.remedies import remedy_for, remedy_for_type
from heapwatch.explain.series import Growth
from heapwatch.explain.sites import (
    Site,
    Use,
    bounds_of,
    callers_of,
    code_of_class,
    function_at,
    user_code,
    uses_of,
)
from heapwatch.explain.tracing import Tracer
from heapwatch.explain.weigh import look_into, newest_of
from heapwatch.measure.layout import layout_of
from heapwatch.measure.reading import Gone, instance_dict, length_of
from heapwatch.measure.rings import CAPACITY_NAMES, capacity_beside
from heapwatch.measure.roots import is_user_file, running_code

_MOST_HOLDERS = 6
_MOST_KEPT = 200


class Describer:
    """Looks at growing containers from all sides; what the code says of one is found once."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._uses: dict[str, tuple[list[Use], list[int | str], Site | None]] = {}
        self._traced: dict[str, Site] = {}

    def describe(self, known: Known, growth: Growth) -> Candidate:
        """Everything about one growing container."""
        look = look_into(known, self._inventory)
        place = known.places[0] if known.places else None
        if place is None:
            return Candidate(known, growth, look, known.capacity, remedy=remedy_for(known, look, None, []))
        uses, bounds, site = self._code_of(known, place)
        emptied = _emptied(uses, bounds) if known.kind != "graph" else "never"
        capacity = known.capacity
        if capacity is None and known.kind not in ("ring", "graph") and emptied != "never":
            capacity = _bound(_named(place)[1], bounds, known)
        return Candidate(
            known,
            growth,
            look,
            capacity,
            self._traced.get(known.path) or site,
            emptied,
            tuple(islice(_holders(place), _MOST_HOLDERS)),
            remedy_for(known, look, capacity, uses),
        )

    def describe_type(self, known: GrowingType, growth: Growth, holders: tuple[str, ...] | None) -> Finding:
        """A growing type as a finding."""
        count = known.counts.last or 0.0
        each = known.each_bytes or 0.0
        return Finding(
            kind="type",
            path=None,
            type=known.name,
            items=round(count),
            bytes=round(count * each) if each else None,
            items_per_minute=60 * growth.per_second,
            bytes_per_minute=60 * growth.per_second * each,
            share=0.0,
            holders=("held from outside Python",) if holders == () else holders or (),
            remedy=remedy_for_type(holders),
        )

    def describe_long(self, found: LongContainer) -> Finding:
        """A growing container that no root leads to as a finding; its path is what holds it."""
        each = (found.bytes or 0) / max(1, found.items)
        return Finding(
            kind="container",
            path=" < ".join(found.holders) or None,
            type=found.type,
            items=found.items,
            bytes=found.bytes,
            items_per_minute=found.items_per_minute,
            bytes_per_minute=found.items_per_minute * each,
            share=0.0,
            site=found.site,
            holders=found.holders or ("held from outside Python",),
            remedy=remedy_for_type(found.holders),
        )

    def trace(self, known: Known, tracer: Tracer) -> None:
        """Trace allocations until the container has grown, and remember where its items are made."""
        site = tracer.trace(
            known.path,
            functools.partial(_length, known, self._inventory),
            functools.partial(newest_of, known, self._inventory),
        )
        if site is not None and len(self._traced) < _MOST_KEPT:
            self._traced[known.path] = site._replace(function=function_at(site, user_code()))

    def _code_of(self, known: Known, place: Place) -> tuple[list[Use], list[int | str], Site | None]:
        """What the code does to a container, what it cuts it to, and the line that fills it."""
        found = self._uses.get(known.path)
        if found is None:
            name, owner = _named(place)
            if name is None:
                return [], [], None
            codes = _codes(place, owner)
            uses = uses_of(name, codes)
            found = (uses, bounds_of(name, codes), _site(uses, codes))
            if len(self._uses) < _MOST_KEPT:
                self._uses[known.path] = found
        return found


def _emptied(uses: list[Use], bounds: list[int | str]) -> Emptying:
    effects = {use.effect for use in uses}
    if "trims" in effects or (bounds and effects & {"shrinks", "resets"}):
        return "trimmed"
    return "some" if effects & {"shrinks", "resets"} else "never"


def _length(known: Known, inventory: Inventory) -> float | None:
    total: float | None = None
    for obj, layout in inventory.places_of(known):
        total = (total or 0.0) + (length_of(obj, layout) or 0)
    return total


def _named(place: Place) -> tuple[str | None, Any]:
    """The last name on the way to a container, and the object that has the attribute."""
    at: Place | None = place
    while at is not None and at.parent is not None:
        step = at.step
        assert step is not None
        if step.how in ("name", "slot", "class", "closure", "default", "keyword_default", "thread_local"):
            try:
                owner = at.parent.find({})
            except (Gone, RuntimeError):
                owner = None
            return step.label.rpartition(".")[2], owner
        at = at.parent
    return None, None


def _codes(place: Place, owner: Any) -> list[CodeType]:
    """The code that may fill a container: of the function whose local it is, of its owner, and the user's."""
    root = place
    while root.parent is not None:
        root = root.parent
    if place.parent is root and root.root is not None and root.root.name.startswith("frame "):
        wanted = int(root.root.name.rpartition(" ")[2])
        return [code for code in running_code() if id(code) == wanted]
    codes = {id(code): code for code in user_code()}
    if owner is not None and layout_of(type(owner)).kind == "object":
        for code in code_of_class(type(owner)):
            codes.setdefault(id(code), code)
    return list(codes.values())


def _site(uses: list[Use], codes: list[CodeType]) -> Site | None:
    """The one line where it grows; None when there are several or none."""
    grows = list(dict.fromkeys(use.site for use in uses if use.effect == "grows"))
    mine = [site for site in grows if is_user_file(site.file)]
    chosen = mine or grows
    if len(chosen) != 1:
        return None
    site = chosen[0]
    if mine:
        return site
    callers = [one for one in callers_of(site.function.rpartition(".")[2], codes) if is_user_file(one.file)]
    return callers[0] if len(callers) == 1 else None


def _bound(owner: Any, bounds: list[int | str], known: Known) -> int | None:
    """A bound that the owner declares, or that the code compares the length with."""
    if owner is None:
        return None
    items = known.items.last or 0.0
    namespace = instance_dict(owner) if layout_of(type(owner)).kind == "object" else owner
    if type(namespace) is not dict:
        return None
    beside = capacity_beside(namespace, items)
    if beside is not None:
        return beside
    found: list[int] = []
    for bound in bounds:
        value = bound if type(bound) is int else namespace.get(bound)
        if type(value) is int and value > 1 and (value >= items or str(bound).strip("_") in CAPACITY_NAMES):
            found.append(value)
    return max(found, default=None)


def _holders(place: Place) -> Iterator[str]:
    """What holds a container, the nearest first, up to its root."""
    at: Place | None = place.parent
    while at is not None:
        if at.parent is None:
            assert at.root is not None
            name = at.root.name
            if name.startswith("frame "):
                yield f"local variable of {at.root.label}"
            elif name.startswith("module "):
                yield f"global of {name[7:]}"
            else:
                yield name
        else:
            try:
                layout = layout_of(type(at.find({})))
            except (Gone, RuntimeError):
                return
            if layout.kind != "cell":
                yield layout.qualified_name
        at = at.parent
