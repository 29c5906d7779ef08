"""How the demonstration ends: with nothing left of the leak, and with every alert that it caused over."""

import io
from dataclasses import replace
from itertools import count

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
    """What the services say, in turn; a cleanup brings the healthy levels back.

    Args:
        levels: of the trainer, one after another; the last stays.
        firing: alerts, one list after another; the last stays.
        pace: steps that the trainer makes between two looks.

    """

    def __init__(self, *levels, firing=(), pace=30):
        self.next = list(levels) or [HEALTHY]
        self.turns = list(firing)
        self.steps = count(step=pace)
        self.cleaned = []

    def levels(self):
        now = self.next.pop(0) if len(self.next) > 1 else self.next[0]
        return replace(now, steps=next(self.steps))

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
        self.next = self.next[1:] or [HEALTHY]


class Clock:
    """Stands still but for sleeps."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(demo, "time", clock)
    return clock


@pytest.fixture
def demonstration(clock):

    def make(loop):
        return demo._Demonstration(None, loop, Narrator(Console(file=io.StringIO())))

    return make


def test_what_leaked_after_the_cleanup_is_cleaned_up_too(demonstration):
    loop = Loop(DemoLevels(645, 80, 9e8))
    demonstration(loop)._see_rest_gone(HEALTHY)
    assert loop.cleaned == ["emergency"]


def test_what_a_slow_trainer_leaks_later_is_cleaned_up_too(demonstration):
    loop = Loop(HEALTHY, HEALTHY, DemoLevels(332, 53, 4e8), HEALTHY)
    demonstration(loop)._see_rest_gone(HEALTHY)
    assert loop.cleaned == ["emergency"]


@pytest.mark.parametrize(("pace", "seconds"), [(30, 20), (0.25, 35)])
def test_the_trainer_has_to_go_on_without_the_leak_for_a_while(demonstration, clock, pace, seconds):
    demonstration(Loop(pace=pace))._see_rest_gone(HEALTHY)
    assert seconds <= clock.now < seconds + 10


def test_nothing_is_asked_where_nothing_is_left(demonstration):
    loop = Loop(DemoLevels(187, 12, 5e8))
    demonstration(loop)._see_rest_gone(HEALTHY)
    assert not loop.cleaned


def test_it_waits_for_every_alert_that_it_caused(demonstration):
    loop = Loop(firing=[[OLD], [OLD, CAUSED], [OLD, CAUSED], [OLD]])
    demonstration(loop)._see_silence()
    assert loop.turns == [[OLD]]


def test_an_alert_that_stays_is_no_success(demonstration, monkeypatch):
    monkeypatch.setattr(demo, "PATIENCE", 0)
    loop = Loop(firing=[[], [CAUSED]])
    with pytest.raises(StackError, match=r"end of the alerts: TrainerLimitExceeded \(bodies/all, warning\)$"):
        demonstration(loop)._see_silence()
