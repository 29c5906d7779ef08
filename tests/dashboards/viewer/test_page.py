"""How a page asks: never two rounds at once, and no longer than somebody waits."""

import asyncio

import pytest
from nicegui import core

from heapwatch_viewer.address import State
from heapwatch_viewer.model import Dashboard
from heapwatch_viewer.page import DashboardPage
from heapwatch_viewer.timerange import TimeRange


class Unanswered(DashboardPage):
    """A page whose questions are never answered."""

    def __init__(self):
        board = Dashboard("one", "One", (), (), (), (), "now-1h", "now", "5s")
        super().__init__(board, {"one": board}, None, State(TimeRange(), "5s", "dark", {}))
        self.begun = self.given_up = 0

    async def _ask(self):
        self.begun += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise


def counted(monkeypatch, steps):
    """(begun, given up) after each of `steps`, methods of the page with their arguments."""

    async def scene():
        monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
        page, seen = Unanswered(), []
        for name, *arguments in steps:
            getattr(page, name)(*arguments)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            seen.append((page.begun, page.given_up))
        page.stop()
        return seen

    return asyncio.run(scene())


@pytest.mark.parametrize(
    ("steps", "seen"),
    [
        ([("refresh",), ("refresh",), ("refresh",)], [(1, 0), (1, 0), (1, 0)]),
        ([("refresh",), ("reload",)], [(1, 0), (2, 1)]),
        ([("reload",), ("stop",), ("refresh",)], [(1, 0), (1, 1), (2, 1)]),
        ([("watch", False), ("refresh",), ("watch", True)], [(0, 0), (0, 0), (1, 0)]),
    ],
    ids=[
        "a refresh waits for answers",
        "the user does not",
        "a closed page asks no more",
        "a hidden one asks nothing",
    ],
)
def test_questions_do_not_accumulate(monkeypatch, steps, seen):
    assert counted(monkeypatch, steps) == seen
