"""How the demonstration ends: with nothing left of the leak, and with every alert that it caused over."""

import io

import pytest
from rich.console import Console

from heapwatch.stack import demo
from heapwatch.stack.errors import StackError
from heapwatch.stack.loop import DemoLevels
from heapwatch.stack.report import Narrator

HEALTHY = DemoLevels(186, 6, 4e8)
OLD = {"alertname": "TrainerStalled", "severity": "warning"}
CAUSED = {
    "alertname": "TrainerLimitExceeded",
    "severity": "warning",
    "resource": "bodies",
    "component": "all",
}


class Loop:
    """What the services say, in turn; a cleanup brings the healthy levels back."""

    def __init__(self, *, levels=HEALTHY, firing=()):
        self.now = levels
        self.turns = list(firing)
        self.cleaned = []

    def levels(self):
        return self.now

    def actions(self):
        return []

    def freed(self):
        return 0.0

    def alerts(self):
        return []

    def firing(self):
        return self.turns.pop(0) if len(self.turns) > 1 else self.turns[0] if self.turns else []

    def clean(self, action):
        self.cleaned.append(action)
        self.now = HEALTHY


@pytest.fixture
def demonstration(monkeypatch):
    monkeypatch.setattr(demo.time, "sleep", lambda _: None)

    def make(loop):
        return demo._Demonstration(None, loop, Narrator(Console(file=io.StringIO())))

    return make


def test_what_leaked_after_the_cleanup_is_cleaned_up_too(demonstration):
    loop = Loop(levels=DemoLevels(645, 80, 9e8))
    demonstration(loop)._see_rest_gone(HEALTHY)
    assert loop.cleaned == ["emergency"]


def test_nothing_is_asked_where_nothing_is_left(demonstration):
    loop = Loop(levels=DemoLevels(187, 12, 5e8))
    demonstration(loop)._see_rest_gone(HEALTHY)
    assert not loop.cleaned


def test_it_waits_for_every_alert_that_it_caused(demonstration):
    loop = Loop(firing=[[OLD], [OLD, CAUSED], [OLD, CAUSED], [OLD]])
    demonstration(loop)._see_silence()
    assert loop.turns == [[OLD]]


def test_an_alert_that_stays_is_no_success(demonstration, monkeypatch):
    monkeypatch.setattr(demo, "PATIENCE", 0)
    loop = Loop(firing=[[], [CAUSED]])
    with pytest.raises(StackError, match="end of the alerts"):
        demonstration(loop)._see_silence()
