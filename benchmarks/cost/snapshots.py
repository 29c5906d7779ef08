"""What trainers' authors wrote to see their memory, after their own descriptions: the competition."""

from __future__ import annotations

import gc
import sys
from collections import deque
from typing import Any

_WATCHED = ("TradingEnvironment", "DDPGAgent", "ReplayBuffer", "list", "dict", "ndarray", "Tensor")
_LARGE = 10_000_000


def erl_snapshot() -> tuple[dict[str, int], list[tuple[str, int]]]:
    """A snapshot as the trading trainer took it: a collection and a pass for counts, then for large ones."""
    counts = dict.fromkeys(_WATCHED, 0)
    gc.collect()
    for obj in gc.get_objects():
        for name in _WATCHED:
            if type(obj).__name__ == name:
                counts[name] += 1
                break
    large = []
    gc.collect()
    for obj in gc.get_objects():
        try:
            size = sys.getsizeof(obj)
        except Exception:
            continue
        if size >= _LARGE:
            large.append((type(obj).__name__, size))
    return counts, large


def metta_size(obj: Any, seen: set[int] | None = None) -> int:
    """Deep size as the Metta trainer took it: `sys.getsizeof` of all that containers and attributes hold."""
    seen = set() if seen is None else seen
    if id(obj) in seen:
        return 0
    seen.add(id(obj))
    size = sys.getsizeof(obj)
    if isinstance(obj, dict):
        size += sum(metta_size(key, seen) + metta_size(value, seen) for key, value in obj.items())
    elif isinstance(obj, (list, tuple, set, frozenset)) and not isinstance(obj, deque):
        size += sum(metta_size(item, seen) for item in obj)
    elif hasattr(obj, "__dict__"):
        size += metta_size(vars(obj), seen)
    return size
