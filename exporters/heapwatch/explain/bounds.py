"""Finds a container's bound, set by the code, by its owner or by another container.

A limit in the code is one of these: the number that a length is compared with before an item is added,
removed or overwritten; the length to which a slice cuts a container; the modulus by which positions are
computed; the distance to the newest key at which an item is removed.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from types import CodeType
from typing import Any, NamedTuple

from heapwatch.explain.candidate import Emptying
from heapwatch.explain.inventory import Inventory
from heapwatch.explain.places import KnownContainer
from heapwatch.explain.sites import Use, mentions
from heapwatch.explain.statements import SETTING_UP, Operand, statements_of
from heapwatch.judge.level import FloorGrowth
from heapwatch.measure.introspection.attributes import attributes_of
from heapwatch.measure.introspection.containers import first_items, length_of
from heapwatch.measure.introspection.layout import Layout, layout_of, namespace_of
from heapwatch.measure.introspection.roots import module_namespace
from heapwatch.measure.sizing.replay_buffers import CAPACITY_NAMES, capacity_beside, plain_name

_MOST_SETTINGS = 50
_FEWEST, _MOST = 8, 2000  # things that are compared
_MOST_SEARCHED = 40  # containers in which the keys are looked for
_DISTINCT = 0.9  # least share of different values of an attribute that tells things apart
_STILL_SECONDS = 60.0
_COMPARED = ("list", "dict")

# Attributes that give the largest age of an item in seconds.
_AGE_NAMES = ("ttl", "ttl_seconds", "max_age", "max_age_seconds", "expire_seconds")
_AGE_MARGIN = 1.25  # an item may get older than that by this factor before it is removed


class Limit(NamedTuple):
    """A limit of a container.

    Attributes:
        value: a number, or the name of one; None if the code shows neither.
        counter: name of the number that is compared with the limit; None if it is the container's length.
        container: name of another container whose length is compared with the limit; None if there is none.
        is_age: whether the limit is the number of seconds for which an item is kept.

    """

    value: int | str | None
    counter: str | None = None
    container: str | None = None
    is_age: bool = False


_UNKNOWN = Limit(None)


def limits_of(
    name: str, codes: Iterable[CodeType], lines: Collection[int], removing: Collection[int] = ()
) -> list[Limit]:
    """The limits of a container of this name in these functions.

    Args:
        name: of the container.
        codes: the functions.
        lines: lines that add, remove or overwrite an item.
        removing: lines that remove an item.

    """
    codes = list(codes)
    functions = {code: statements_of(code) for code in codes if mentions(code, name)}
    called = {test.value for body in functions.values() for test, *_ in body.guards if test.kind == "call"}
    answers = {
        code.co_name: test for code in codes if code.co_name in called for test in statements_of(code).returns
    }
    cycles = {
        target: value.parts[1]
        for body in functions.values()
        for target, value in body.assigned.items()
        if value.kind == "modulo"
    }
    # A function without source may have a limit.
    is_missing = any(body.missing for body in functions.values())
    limits: dict[Limit, None] = {_UNKNOWN: None} if is_missing else {}
    for code, body in functions.items():
        for test, first, last in body.guards:
            test = answers.get(test.value, test) if test.kind == "call" else test
            if _is_index_check(test, name, code):
                continue
            if test.kind == "comparison" and any(first <= line <= last for line in lines):
                limits.update(dict.fromkeys(_limits_in(test, name)))
            if test.kind == "comparison" and any(first <= line <= last for line in removing):
                limits.update(dict.fromkeys(_windows_in(*test.parts)))
        for container, key in body.keys:
            cycle = key.parts[1] if key.kind == "modulo" else cycles.get(key.value)
            if container == name and cycle is not None and cycle.kind in ("name", "number"):
                limits[Limit(cycle.value)] = None
        for container, key in body.drops:
            if container == name and key.kind == "difference" and key.parts[1].kind in ("name", "number"):
                limits[Limit(key.parts[1].value)] = None
        for container, ends in body.cuts:
            if container == name:
                values = [end.value for end in ends if end.kind in ("name", "number") and end.value]
                limits[Limit(values[0] if len(values) == 1 else None)] = None
    moving = set().union(*map(_rebound_names, functions))
    return [limit for limit in limits if limit.value not in moving]


def _rebound_names(code: CodeType) -> set[str]:
    """Attributes and globals that the program rebinds while it runs: positions and counts, not limits."""
    if code.co_name in SETTING_UP or not code.co_flags & inspect.CO_OPTIMIZED:
        return set()
    return set(statements_of(code).assigned) - {*code.co_varnames, *code.co_cellvars}


def _is_index_check(test: Operand, name: str, code: CodeType) -> bool:
    """Whether it compares an argument with the container's length, such as `index == len(items)`."""
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    others = [part for part in test.parts if part != Operand("length", name)]
    is_equality = test.value == "==" and len(others) == 1
    return is_equality and others[0].kind == "name" and others[0].value in arguments


def _limits_in(comparison: Operand, name: str) -> Iterator[Limit]:
    operator, (left, right) = comparison.value, comparison.parts
    if left.kind == "difference" and right == Operand("number", 0):
        left, right = left.parts
    for measure, limit in ((left, right), (right, left)):
        value = limit.value if limit.kind in ("name", "number") else None
        if measure == Operand("length", name):
            if value != 0 and (value is not None or operator != "=="):
                yield Limit(value)
                return
        elif measure.kind == "length" and value:
            yield Limit(value, container=measure.value)
            return
    # In `count >= limit`, the larger side is the count.
    large, small = (left, right) if operator.startswith(">") else (right, left)
    if operator != "==" and large.kind == "name" and small.kind in ("name", "number") and small.value:
        yield Limit(small.value, counter=large.value)


def _windows_in(left: Operand, right: Operand) -> Iterator[Limit]:
    """How far behind the present an item is removed: `key < step - 1000`, or `now - item.time > 60`."""
    for side, other in ((left, right), (right, left)):
        if side.kind != "difference" or other.kind == "length" or other == Operand("number", 0):
            continue
        start, subtracted = side.parts
        if start.kind == "clock":  # one is the largest age, the other an item's time
            ages = [one.value for one in (subtracted, other) if one.kind in ("name", "number", "float")]
            yield from [Limit(age, is_age=True) for age in ages] or [_UNKNOWN]
        elif other.kind == "name" and subtracted.kind in ("name", "number") and start.kind == "name":
            yield Limit(subtracted.value)
        else:
            yield _UNKNOWN


def emptying_of(uses: Sequence[Use], limits: Sequence[Limit], owner: Any, items: float) -> Emptying:
    """How a program removes items from a container that now holds `items` of them."""
    effects = {use.effect for use in uses}
    if limits or effects & {"trims", "overwrites"}:
        bounds = [bound for limit in limits if (bound := _items_at(limit, owner, items)) is not None]
        if not bounds or max(bounds) >= items:
            return "trimmed"
        # The container is longer than every limit in the code, so none of them bounds it.
        return "some"
    if "empties" in effects:
        return "whole"
    return "some" if "shrinks" in effects else "never"


def is_cut_shorter(uses: Sequence[Use], limits: Sequence[Limit], owner: Any, items: float) -> bool:
    """Whether an unknown limit may be lower than the bound that the owner declares."""
    trims = any(use.effect == "trims" for use in uses)
    return (trims and not limits) or any(_items_at(limit, owner, items) is None for limit in limits)


def bound_of(
    owner: Any, limits: Sequence[Limit], items: float, each: float | None, growth: FloorGrowth
) -> int | None:
    """The bound that the owner declares or the code enforces; None where there is none.

    Args:
        owner: the object that has the container as an attribute.
        limits: those in the code.
        items: number of items in the container.
        each: bytes of an item; None if they are not known.
        growth: of the number of items. With a largest age, it rises until the first items reach that age.

    """
    namespace = _namespace(owner)
    if namespace is None:
        return None
    declared = capacity_beside(namespace, items, each)
    ages = (value for name, value in list(namespace.items()) if plain_name(name) in _AGE_NAMES)
    declared_ages = [float(value) for value in ages if _is_number(value) and value > 0]
    in_code = [_value(one.value, owner) or 0.0 for one in limits if one.is_age and one.value is not None]
    age = max(declared_ages[:1] or in_code, default=0.0)
    if declared is None and growth.span < _AGE_MARGIN * age:
        declared = round(max(items, age * growth.per_second))
    if declared is not None:
        return declared
    values = [(_items_at(limit, owner, items), str(limit.value).strip("_")) for limit in limits]
    bounds = [one for one, name in values if one is not None and (one >= items or name in CAPACITY_NAMES)]
    return max(map(round, bounds), default=None)


def _items_at(limit: Limit, owner: Any, items: float) -> float | None:
    """The number of items at which a limit is reached; None where it is unknown."""
    value = None if limit.value is None else _value(limit.value, owner)
    if value is None or limit.is_age:
        return None
    measured: float | None
    if limit.container is not None:
        other = _resolved(limit.container, owner)
        measured = None if other is None else length_of(other, layout_of(type(other)))
    elif limit.counter is not None:
        measured = _value(limit.counter, owner)
    else:
        return value
    # A limit may count something else than items, such as steps: assume that each item has the same number.
    return items * value / measured if measured else None


def _namespace(owner: Any) -> dict[Any, Any] | None:
    if owner is None:
        return None
    namespace = attributes_of(owner) if layout_of(type(owner)).kind == "object" else owner
    return namespace if type(namespace) is dict else None


def _value(limit: int | str, owner: Any) -> float | None:
    """The value of a limit: a number, or the number with this name in the owner or its settings."""
    value: Any = _resolved(limit, owner) if type(limit) is str else limit
    if type(value) is float and not value.is_integer():
        return None
    return abs(value) if _is_number(value) and abs(value) > 1 else None


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def _resolved(name: str, owner: Any) -> Any:
    """The value of a name in the code of an object; None if it is unknown."""
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


def bound_by_keys(container: KnownContainer, inventory: Inventory) -> int | None:
    """Length of an unchanging container that has an item for each key of this dictionary; None without one.

    A dictionary of networks by agent grows until all agents have learned. Its keys are also the keys of that
    container, or an attribute of all its items. Numbers in rising order are steps, not names.
    """
    length = container.items.last or 0.0
    if container.kind != "dict" or not _FEWEST <= length <= _MOST:
        return None
    keys = _keys(container, inventory)
    still = (other for other in list(inventory.known.values()) if keys and _stands_still(other, container))
    for other in islice(still, _MOST_SEARCHED):
        for obj, layout in inventory.places_of(other):
            if any(keys <= names for names in _names(obj, layout)):
                return round(other.items.last or 0.0)
    return None


def _stands_still(other: KnownContainer, container: KnownContainer) -> bool:
    """Whether a container is at least as long as the growing one, and had not changed for long before."""
    if other.kind not in _COMPARED or len(other.places) != 1 or other is container:
        return False
    read = other.items.since(float("-inf"))
    still_since = max(other.items.changed_at, read[0].start) if read else float("inf")
    long_enough = container.items.changed_at - still_since >= _STILL_SECONDS
    return long_enough and (container.items.last or 0.0) <= (other.items.last or 0.0) <= _MOST


def _keys(container: KnownContainer, inventory: Inventory) -> set[Any]:
    for obj, layout in inventory.places_of(container):
        keys = list(dict.keys(obj)) if layout.kind == "dict" else []
        if all(map(_is_plain, keys)) and not (all(type(key) is int for key in keys) and keys == sorted(keys)):
            return set(keys)
    return set()


def _names(obj: Any, layout: Layout) -> list[set[Any]]:
    """The keys of a dictionary, and the values of each attribute that tells the things in it apart."""
    if layout.kind not in _COMPARED:  # there was a list or a dictionary when the place was read
        return []
    things = first_items(obj, _MOST, dict.values if layout.kind == "dict" else list.__iter__)
    names = [set(filter(_is_plain, list(dict.keys(obj))))] if layout.kind == "dict" else []
    by_name: dict[str, set[Any]] = {}
    for thing in things:
        for name, value in list(dict.items(attributes_of(thing) or {})):
            if _is_plain(value):
                by_name.setdefault(name, set()).add(value)
    return names + [values for values in by_name.values() if len(values) >= _DISTINCT * len(things)]


def _is_plain(value: object) -> bool:
    return type(value) is str or type(value) is int
