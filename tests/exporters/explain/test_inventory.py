"""In what order the inventory reads what it found, where the time does not suffice for all."""

from __future__ import annotations

from itertools import count

import pytest

from heapwatch.explain import inventory as subject
from heapwatch.explain.inventory import Inventory
from heapwatch.measure.roots import Root


class Holder:
    pass


def test_what_changes_is_read_before_what_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("user_modules", "frame_roots", "registry_roots"):
        monkeypatch.setattr(subject, name, list)
    held = Holder()
    for at in range(200):
        setattr(held, f"list{at}", [at])
    now = [0.0]
    spent = count()
    inventory = Inventory(
        clock=lambda: now[0], spent=lambda: next(spent), extra_roots=lambda: [Root("it", "it", lambda: held)]
    )
    while not inventory.discover(1000):
        pass
    known = list(inventory.known.values())
    growing = known.pop()
    assert len(known) >= 100
    now[0] = 100.0
    for one in known:
        one.interval, one.due = 30.0, 80.0
    growing.interval, growing.due = 1.0, 95.0
    assert inventory.read(0) < len(known)
    assert growing.items.read_at == 100.0
