"""Which objects of a list are garbage: those that only others of them refer to. Nothing is freed."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from typing import Any

from heapwatch.measure.introspection.attributes import namespace_among
from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.sizing.deep_size import OutOfTime, deep_size
from heapwatch.measure.sizing.sampling import ContainerChanged
from heapwatch.measure.sizing.type_information import own_bytes

_BUDGET_SECONDS = 0.02
_MOST_DICTS, _MOST_KEYS, _MOST_FOLLOWED = 50, 50, 40
# What `sys.getrefcount` says of an object in a list, to which nothing else refers.
_HELD = next(map(sys.getrefcount, [object()]))


def tuples_in(objects: list[Any]) -> list[Any]:
    """Tracked tuples to which these objects refer, also inside other such tuples."""
    found: dict[int, Any] = {}
    parts = gc.get_referents(*objects)
    while parts:
        part = parts.pop()
        if type(part) is tuple and id(part) not in found and gc.is_tracked(part):
            found[id(part)] = part
            parts += gc.get_referents(part)
    return list(found.values())


def unreachable(objects: list[Any]) -> list[int]:
    """Positions of the objects in cycles, and of what these hold, to which nothing else refers.

    That is the collector's own rule. What the list alone holds would be freed without a collector: it is left
    out. No other variable of the caller may refer to the objects. One that changes meanwhile counts as alive.
    """
    position = {id(obj): at for at, obj in enumerate(objects)}
    outer = [count - _HELD for count in map(sys.getrefcount, objects)]
    parts: list[list[int]] = []
    for obj in objects:
        held = [position[key] for key in map(id, gc.get_referents(obj)) if key in position]
        parts.append(held)
        for at in held:
            outer[at] -= 1
    ahead = [at for at, count in enumerate(outer) if count]
    alive = set(ahead)
    while ahead:
        for at in parts[ahead.pop()]:
            if at not in alive:
                alive.add(at)
                ahead.append(at)
    dead = {at for at in range(len(outer)) if at not in alive}
    references = Counter(part for at in dead for part in parts[at] if part in dead)
    ahead = [at for at in dead if not references[at]]
    while ahead:
        at = ahead.pop()
        dead.discard(at)
        for part in parts[at]:
            references[part] -= 1
            if not references[part]:
                ahead.append(part)
    return sorted(dead)


def without_namespaces(objects: list[Any], chosen: list[int]) -> list[int]:
    """Those of the chosen positions that are not the dict of an instance at another of them."""
    dicts = {id(objects[at]) for at in chosen if type(objects[at]) is dict}
    for obj in map(objects.__getitem__, chosen if dicts else ()):
        dicts.discard(id(namespace_among(obj, gc.get_referents(obj))))
    return [at for at in chosen if type(objects[at]) is not dict or id(objects[at]) in dicts]


def closing_key(objects: list[Any], chosen: list[int]) -> str | None:
    """The commonest key under which a dict among these objects leads back to itself."""
    inside = {id(objects[at]) for at in chosen}
    dicts = [objects[at] for at in chosen if type(objects[at]) is dict][-_MOST_DICTS:]
    keys: Counter[str] = Counter()
    for one in dicts:
        for key, value in list(dict.items(one))[:_MOST_KEYS]:
            if type(key) is str and id(value) in inside and _leads_to(value, one, inside):
                keys[key] += 1
    return keys.most_common(1)[0][0] if keys else None


def _leads_to(start: Any, target: Any, inside: set[int]) -> bool:
    ahead, seen = [start], {id(start)}
    while ahead and len(seen) < _MOST_FOLLOWED:
        obj = ahead.pop(0)
        if obj is target:
            return True
        for part in gc.get_referents(obj):
            if id(part) in inside and id(part) not in seen:
                seen.add(id(part))
                ahead.append(part)
    return False


def bytes_held(objects: list[Any], chosen: list[int]) -> float | None:
    """Bytes of these objects and of untracked ones, such as arrays, to which nothing else refers.

    None where they cannot be measured in time.
    """
    total = 0.0
    references: dict[int, int] = {}
    untracked: list[Any] = []
    for at in chosen:
        kind = type(objects[at])
        if layout_of(kind).kind == "tensor":
            untracked.append(objects[at])
            references[id(objects[at])] = sys.maxsize
            continue
        total += own_bytes(objects[at], kind)
        for part in gc.get_referents(objects[at]):
            if not gc.is_tracked(part):
                if id(part) not in references:
                    untracked.append(part)
                references[id(part)] = references.get(id(part), 0) + 1
    part = None
    wanted = [count - _HELD for count in map(sys.getrefcount, untracked)]
    leaves = [leaf for leaf, count in zip(untracked, wanted, strict=True) if references[id(leaf)] >= count]
    untracked.clear()
    try:
        size = deep_size(leaves, budget_seconds=_BUDGET_SECONDS)
    except (OutOfTime, ContainerChanged, RuntimeError):
        return None
    if size.unread:
        return None
    return total + size.bytes + size.gpu_bytes + size.shared_bytes
