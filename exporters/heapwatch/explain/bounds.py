"""What the limits that a program's code names amount to for one of its containers."""

from __future__ import annotations

from itertools import islice
from typing import Any

from heapwatch.explain.evidence import Emptying
from heapwatch.explain.limits import Limit
from heapwatch.explain.sites import Use
from heapwatch.measure.layout import layout_of, namespace_of
from heapwatch.measure.reading import instance_dict, length_of
from heapwatch.measure.rings import CAPACITY_NAMES, capacity_beside
from heapwatch.measure.roots import module_namespace

_MOST_SETTINGS = 50


def emptying_of(uses: list[Use], limits: list[Limit], owner: Any, items: float) -> Emptying:
    """How a program takes items out of a container that has so many now."""
    effects = {use.effect for use in uses}
    if limits or effects & {"trims", "overwrites"}:
        values = [_items_at(limit, owner, items) for limit in limits]
        known = [value for value in values if value is not None]
        if not known or max(known) >= items:
            return "trimmed"
        # Longer than all that the code compares it with: whatever that does, it is no bound.
        return "some"
    return "some" if effects & {"shrinks", "resets"} else "never"


def bound_of(owner: Any, limits: list[Limit], items: float) -> int | None:
    """A bound that the owner declares, or that the code keeps to."""
    namespace = _namespace(owner)
    if namespace is None:
        return None
    beside = capacity_beside(namespace, items)
    if beside is not None:
        return beside
    found: list[int] = []
    for limit in limits:
        value = _items_at(limit, owner, items)
        if value is not None and (value >= items or str(limit.limit).strip("_") in CAPACITY_NAMES):
            found.append(round(value))
    return max(found, default=None)


def _items_at(limit: Limit, owner: Any, items: float) -> float | None:
    """How many items there will be when a limit is reached; None where that is not known."""
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
    # What is counted otherwise, such as the steps of episodes, is taken to be the same for each item.
    return items * value / measured if measured else None


def _namespace(owner: Any) -> dict[Any, Any] | None:
    if owner is None:
        return None
    found = instance_dict(owner) if layout_of(type(owner)).kind == "object" else owner
    return found if type(found) is dict else None


def _value(said: int | str, owner: Any) -> float | None:
    """What a limit amounts to, where it is a number or names one of the owner's, or of its settings."""
    found: Any = _found(said, owner) if type(said) is str else said
    if type(found) is float and not found.is_integer():
        return None
    return abs(found) if type(found) in (int, float) and abs(found) > 1 else None


def _found(name: str, owner: Any) -> Any:
    """What a name stands for in the code of an object; None where that is not known."""
    layout = layout_of(type(owner))
    own = _namespace(owner) or {}
    classes = [namespace_of(cls) for cls in layout.mro] if layout.kind == "object" else []
    settings = [
        namespace
        for value in list(islice(own.values(), _MOST_SETTINGS))
        if layout_of(type(value)).kind == "object" and type(namespace := instance_dict(value)) is dict
    ]
    places = [own, *classes, module_namespace(layout.module), *settings, module_namespace("__main__")]
    return next((place[name] for place in places if place is not None and name in place), None)
