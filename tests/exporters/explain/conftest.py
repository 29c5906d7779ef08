"""Roots of the inventories: those that a test gives, and no others."""

import pytest

from heapwatch.explain import inventory


@pytest.fixture(autouse=True)
def only_given_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("user_modules", "frame_roots", "registry_roots"):
        monkeypatch.setattr(inventory, name, list)
