"""What is watched: a resource of the trainer and one instance of it, and the least rise that matters."""

from __future__ import annotations

import math
from typing import NamedTuple

BYTES = ("memory", "gpu_memory", "object_size")  # resources whose levels are bytes; the others are counts
ENTITIES = ("entities", "bodies")
MATERIAL_SHARE, MATERIAL_BYTES = 0.025, 5e6
_MATERIAL_ITEMS, _MATERIAL_ROOTS = 4.0, 3.0


class Component(NamedTuple):
    """A resource and the name of one instance of it."""

    resource: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource} {self.name}".strip()


MEMORY = Component("memory", "trainer")
WORKERS = Component("memory", "worker")
GROWN = Component("memory", "since start")  # bytes of the trainer's memory above its baseline


def material(component: Component, level: float) -> float:
    """The least rise that counts: for bytes above their usual noise, for items above the error of a count."""
    if component.resource in BYTES:
        return max(MATERIAL_SHARE * level, MATERIAL_BYTES)
    return _MATERIAL_ITEMS + _MATERIAL_ROOTS * math.sqrt(max(level, 0.0))
