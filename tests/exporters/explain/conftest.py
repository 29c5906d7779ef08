"""What tests of the explainer share: no roots but those that a test gives, a clock, and a census."""

import pytest

from heapwatch.explain import inventory
from heapwatch.explain.census import Census


@pytest.fixture(autouse=True)
def only_given_roots(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("user_modules", "frame_roots", "registry_roots"):
        monkeypatch.setattr(inventory, name, list)


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


@pytest.fixture
def census(clock: list[float]) -> Census:
    return Census(clock=lambda: clock[0], unlimited=True)
