"""Dictionaries with one entry for each of a fixed number of things: they fill, and end with these.

A dictionary of networks with the ids of agents as keys grows at first, since not all agents have learned yet.
Its bound is the number of agents, as long as that stands still.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from heapwatch.explain.inventory import Inventory
from heapwatch.explain.places import KnownContainer
from heapwatch.measure.introspection.attributes import attributes_of
from heapwatch.measure.introspection.containers import first_items
from heapwatch.measure.introspection.layout import Layout

_FEWEST, _MOST = 8, 2000  # things that are compared
_MOST_SEARCHED = 40  # containers in which the keys are looked for
_DISTINCT = 0.9  # least share of different values of an attribute that tells things apart
_STILL_SECONDS = 60.0
_COMPARED = ("list", "dict")


def bound_by_keys(known: KnownContainer, inventory: Inventory) -> int | None:
    """Length of a container that stands still and has a thing for each key of this dictionary.

    The keys of the dictionary are keys of that container too, or one attribute of all things in it. Numbers
    in rising order are steps, not names. None where there is no such container.
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
