"""A panel shows what went wrong, whatever it was."""

import asyncio

import pytest
from nicegui import Client, core
from nicegui.page import page

from heapwatch_viewer.model import Panel
from heapwatch_viewer.panel import RENDERERS, PanelView
from heapwatch_viewer.prometheus import QueryError
from heapwatch_viewer.timerange import Window

PANEL = Panel(1, "stat", "Title", "", (0, 0, 6, 4), (), {})


@pytest.mark.parametrize(
    ("problem", "shown"),
    [(QueryError("too many samples"), "too many samples"), (KeyError("le"), "KeyError('le')")],
)
def test_an_error_is_shown_until_the_panel_can_be_drawn(monkeypatch, problem, shown):
    def fail(answers):
        raise problem

    async def scene():
        monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
        with Client(page("/panel"), request=None):
            view = PanelView(PANEL, 0, lambda address, values: address, lambda start, end: None)
            with monkeypatch.context() as broken:
                broken.setitem(RENDERERS, "stat", fail)
                await view.refresh(None, {}, Window(0, 300, 60), [])
            assert view._error.visible
            assert shown in view._error.text
            await view.refresh(None, {}, Window(0, 300, 60), [])
            assert not view._error.visible

    asyncio.run(scene())
