"""Inventories of what a test has made."""

from __future__ import annotations

from typing import Any

from heapwatch.explain.inventory import Inventory
from heapwatch.measure.introspection.roots import Root


def walk(inventory: Inventory) -> None:
    """Complete one walk."""
    while not inventory.discover(1000):
        pass


def inventory_of(held: object, name: str = "it", **options: Any) -> Inventory:
    """The inventory after a walk from an object, or so many `walks`."""
    return inventory_from(Root(name, name, lambda: held), **options)


def inventory_from(*roots: Root, walks: int = 1, **options: Any) -> Inventory:
    """The inventory after so many walks from these roots, in this order."""
    still: dict[str, Any] = {"clock": lambda: 0.0, "spent": lambda: 0.0}
    found = Inventory(**still | options, extra_roots=lambda: list(roots))
    for _ in range(walks):
        walk(found)
    return found
