"""The bound of a container: that its owner declares, its code enforces, or another container sets."""

from __future__ import annotations

from itertools import islice
from typing import Any

from heapwatch.explain.evidence import Emptying
from heapwatch.explain.inventory import Inventory
from heapwatch.explain.places import KnownContainer
from heapwatch.explain.source.length_limits import Limit
from heapwatch.explain.source.sites import Use
from heapwatch.measure.introspection.attributes import attributes_of
from heapwatch.measure.introspection.first_items import first_items
from heapwatch.measure.introspection.layout import Layout, layout_of, namespace_of
from heapwatch.measure.introspection.reading import length_of
from heapwatch.measure.introspection.roots import module_namespace
from heapwatch.measure.sizing.rings import CAPACITY_NAMES, capacity_beside

_MOST_SETTINGS = 50
_FEWEST, _MOST = 8, 2000  # things that are compared
_MOST_SEARCHED = 40  # containers in which the keys are looked for
_DISTINCT = 0.9  # least share of different values of an attribute that tells things apart
_STILL_SECONDS = 60.0
_COMPARED = ("list", "dict")


def emptying_of(uses: list[Use], limits: list[Limit], owner: Any, items: float) -> Emptying:
    """How a program removes items from a container that now holds `items` of them."""
    effects = {use.effect for use in uses}
    if limits or effects & {"trims", "overwrites"}:
        values = [_items_at(limit, owner, items) for limit in limits]
        known = [value for value in values if value is not None]
        if not known or max(known) >= items:
            return "trimmed"
        # The container is longer than every limit in the code, so none of them bounds it.
        return "some"
    return "some" if effects & {"shrinks", "resets"} else "never"


def is_cut_shorter(uses: list[Use], limits: list[Limit], owner: Any, items: float) -> bool:
    """Whether a limit that is not known may keep a container below the bound that its owner declares."""
    trims = any(use.effect == "trims" for use in uses)
    return (trims and not limits) or any(_items_at(limit, owner, items) is None for limit in limits)


def bound_of(owner: Any, limits: list[Limit], items: float) -> int | None:
    """The bound that the owner declares or the code enforces; None where there is none."""
    namespace = _namespace(owner)
    if namespace is None:
        return None
    beside = capacity_beside(namespace, items)
    if beside is not None:
        return beside
    values = [(_items_at(limit, owner, items), str(limit.limit).strip("_")) for limit in limits]
    found = [one for one, name in values if one is not None and (one >= items or name in CAPACITY_NAMES)]
    return max(map(round, found), default=None)


def _items_at(limit: Limit, owner: Any, items: float) -> float | None:
    """The number of items at which a limit is reached; None where it is unknown."""
    value = None if limit.limit is None else _value(limit.limit, owner)
    if value is None:
        return None
    measured: float | None
    if limit.of is not None:
        other = _found(limit.of, owner)
        measured = None if other is None else length_of(other, layout_of(type(other)))
    elif limit.measure is not None:
        measured = _value(limit.measure, owner)
    else:
        return value
    # A limit may count something else than items, such as steps: assume that each item has the same number.
    return items * value / measured if measured else None


def _namespace(owner: Any) -> dict[Any, Any] | None:
    if owner is None:
        return None
    found = attributes_of(owner) if layout_of(type(owner)).kind == "object" else owner
    return found if type(found) is dict else None


def _value(limit: int | str, owner: Any) -> float | None:
    """The value of a limit: a number, or a name that the owner or its settings give a number."""
    found: Any = _found(limit, owner) if type(limit) is str else limit
    if type(found) is float and not found.is_integer():
        return None
    return abs(found) if type(found) in (int, float) and abs(found) > 1 else None


def _found(name: str, owner: Any) -> Any:
    """The value that a name has in the code of an object; None where it is unknown."""
    layout = layout_of(type(owner))
    own = _namespace(owner) or {}
    classes = [namespace_of(cls) for cls in layout.mro] if layout.kind == "object" else []
    settings = [
        namespace
        for value in first_items(own, _MOST_SETTINGS, dict.values)
        if layout_of(type(value)).kind == "object" and (namespace := attributes_of(value)) is not None
    ]
    namespaces = [own, *classes, module_namespace(layout.module), *settings, module_namespace("__main__")]
    return next((space[name] for space in namespaces if space is not None and name in space), None)


def bound_by_keys(known: KnownContainer, inventory: Inventory) -> int | None:
    """Length of a container that stands still and has a thing for each key of this dictionary.

    A dictionary of networks by the ids of agents grows as long as not all have learned yet. Its keys are keys
    of that container too, or one attribute of all things in it. Numbers in rising order are steps, not names.
    None where there is no such container.
    """
    length = known.items.last or 0.0
    if known.kind != "dict" or not _FEWEST <= length <= _MOST:
        return None
    wanted = _keys(known, inventory)
    still = (other for other in list(inventory.known.values()) if wanted and _stands_still(other, known))
    for other in islice(still, _MOST_SEARCHED):
        for obj, layout in inventory.places_of(other):
            if any(wanted <= names for names in _names(obj, layout)):
                return round(other.items.last or 0.0)
    return None


def _stands_still(other: KnownContainer, known: KnownContainer) -> bool:
    """Whether a container is at least as long as the growing one, and had not changed for long before."""
    if other.kind not in _COMPARED or len(other.places) != 1 or other is known:
        return False
    read = other.items.since(float("-inf"))
    still_since = max(other.items.changed_at, read[0].start) if read else float("inf")
    long_enough = known.items.changed_at - still_since >= _STILL_SECONDS
    return long_enough and (known.items.last or 0.0) <= (other.items.last or 0.0) <= _MOST


def _keys(known: KnownContainer, inventory: Inventory) -> set[Any]:
    for obj, layout in inventory.places_of(known):
        keys = list(dict.keys(obj)) if layout.kind == "dict" else []
        if all(map(_is_plain, keys)) and not (set(map(type, keys)) == {int} and keys == sorted(keys)):
            return set(keys)
    return set()


def _names(obj: Any, layout: Layout) -> list[set[Any]]:
    """The keys of a dictionary, and the values of each attribute that tells the things in it apart."""
    if layout.kind not in _COMPARED:  # there was a list or a dictionary when the place was read
        return []
    things = first_items(obj, _MOST, dict.values if layout.kind == "dict" else list.__iter__)
    found = [set(filter(_is_plain, list(dict.keys(obj))))] if layout.kind == "dict" else []
    by_name: dict[str, set[Any]] = {}
    for thing in things:
        for name, value in list(dict.items(attributes_of(thing) or {})):
            if _is_plain(value):
                by_name.setdefault(name, set()).add(value)
    return found + [values for values in by_name.values() if len(values) >= _DISTINCT * len(things)]


def _is_plain(value: object) -> bool:
    return type(value) in (str, int)
