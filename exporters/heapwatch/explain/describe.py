"""Everything that can be said about one growing container: its bound, where it grows, who holds it."""

from __future__ import annotations

from itertools import islice
from types import CodeType
from typing import Any

from heapwatch.explain.inventory import Inventory, Known, Place
from heapwatch.explain.judge import Candidate
from heapwatch.explain.remedies import remedy_for
from heapwatch.explain.series import Growth
from heapwatch.explain.sites import Site, Use, bounds_of, callers_of, code_of_class, user_code, uses_of
from heapwatch.explain.weigh import Look, look_into
from heapwatch.measure.layout import layout_of
from heapwatch.measure.reading import Gone, instance_dict
from heapwatch.measure.rings import CAPACITY_NAMES, capacity_beside
from heapwatch.measure.roots import is_user_file, running_code

_MOST_HOLDERS = 6


def describe(known: Known, growth: Growth, inventory: Inventory) -> Candidate:
    """Look at a growing container from all sides."""
    look = look_into(known, inventory)
    place = known.places[0] if known.places else None
    name, owner = (None, None) if place is None else _named(place)
    uses: list[Use] = []
    site: Site | None = None
    capacity = known.capacity
    trimmed = False
    if place is not None and name is not None:
        codes = _codes(place, owner)
        uses = uses_of(name, codes)
        site = _site(uses, codes)
        trimmed = any(use.effect != "grows" for use in uses)
        if capacity is None and known.kind not in ("ring",):
            capacity = _bound(name, owner, codes, known, trimmed)
    holders = () if place is None else tuple(islice(_holders(place), _MOST_HOLDERS))
    return Candidate(
        known, growth, look, capacity, site, trimmed, holders, remedy_for(known, look, capacity, uses)
    )


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
            key = step.key[1] if type(step.key) is tuple else step.key
            if step.how in ("closure", "default") and type(step.label) is str:
                key = step.label.rpartition(".")[2]
            return str(key), owner
        at = at.parent
    return None, None


def _codes(place: Place, owner: Any) -> list[CodeType]:
    """The code that may fill a container: of its owner's class, and the user's."""
    root = place
    while root.parent is not None:
        root = root.parent
    local = place.parent is root and root.root is not None and root.root.name.startswith("frame ")
    if local:
        assert root.root is not None
        wanted = int(root.root.name.rpartition(" ")[2])
        return [code for code in running_code() if id(code) == wanted] or running_code()
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
    return callers[0] if len(callers) == 1 else site


def _bound(name: str, owner: Any, codes: list[CodeType], known: Known, trimmed: bool) -> int | None:
    """A bound that the owner declares, or that the code compares the length with."""
    items = known.items.last or 0.0
    namespace = (
        instance_dict(owner) if owner is not None and layout_of(type(owner)).kind == "object" else owner
    )
    if type(namespace) is not dict:
        return None
    if not trimmed:
        return None
    beside = capacity_beside(namespace, items)
    if beside is not None:
        return beside
    found: list[int] = []
    for bound in bounds_of(name, codes):
        value = bound if type(bound) is int else namespace.get(bound)
        if type(value) is int and value > 1 and (value >= items or str(bound).strip("_") in CAPACITY_NAMES):
            found.append(value)
    return max(found, default=None)


def _holders(place: Place) -> Any:
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
            if layout.kind not in ("cell",):
                yield layout.qualified_name
        at = at.parent


__all__ = ["Look", "describe"]
