"""The line that fills the dictionary of a manager, which is in another process."""

from __future__ import annotations

from typing import Any

from heapwatch.explain.describe import Describer
from heapwatch.explain.sites import Site
from tests.support.walking import inventory_of


class Manager:
    def dict(self) -> dict[int, int]:
        return {}


def fill(of_the_manager: dict[int, int]) -> None:
    of_the_manager[len(of_the_manager)] = 1


def learn() -> Any:
    of_the_manager = Manager().dict()
    fill(of_the_manager)
    return of_the_manager


def test_it_is_the_line_that_adds_to_what_a_call_of_dict_returned(monkeypatch):
    codes = [fill.__code__, learn.__code__]
    monkeypatch.setattr("heapwatch.explain.describe.user_code", lambda: codes)
    site = Describer(inventory_of([])).hosted_filled_at()
    assert site == Site(__file__, fill.__code__.co_firstlineno + 1, "fill")
    codes.remove(learn.__code__)
    assert Describer(inventory_of([])).hosted_filled_at() is None
