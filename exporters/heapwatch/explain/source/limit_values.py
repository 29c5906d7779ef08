"""Evaluates the limits that a program's code sets, for one of its containers."""

from __future__ import annotations

from typing import Any

from heapwatch.explain.evidence import Emptying
from heapwatch.explain.source.length_limits import Limit
from heapwatch.explain.source.sites import Use
from heapwatch.measure.introspection.attributes import attributes_of
from heapwatch.measure.introspection.containers import first_items, length_of
from heapwatch.measure.introspection.layout import layout_of, namespace_of
from heapwatch.measure.introspection.roots import module_namespace
from heapwatch.measure.sizing.replay_buffers import CAPACITY_NAMES, capacity_beside

_MOST_SETTINGS = 50


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
    found: list[int] = []
    for limit in limits:
        value = _items_at(limit, owner, items)
        if value is not None and (value >= items or str(limit.limit).strip("_") in CAPACITY_NAMES):
            found.append(round(value))
    return max(found, default=None)


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
