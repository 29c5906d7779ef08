"""How the demonstration ends: with nothing left of the leak, and with no alert that asks for a cleanup."""

import io
import stat
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from heapwatch_stack import demo, loop
from heapwatch_stack.errors import StackError
from heapwatch_stack.loop import DemoLevels
from heapwatch_stack.report import Narrator
from heapwatch_stack.settings import Settings

HEALTHY = DemoLevels(186, 6, 4e8)
OLD = {"alertname": "TrainerStalled", "severity": "warning"}
CAUSED = {
    "alertname": "TrainerLimitExceeded",
    "severity": "critical",
    "resource": "bodies",
    "component": "all",
}
WARNING = {**CAUSED, "severity": "warning"}


class Loop:
    """What the services say, in turn; a cleanup brings the healthy levels back.

    Args:
        levels: of the trainer, one after another; the last stays.
        asking: alerts that ask for a cleanup, one list after another; the last stays.
        firing: all alerts that fire.
        rate: steps that the trainer makes between two looks.

    """

    def __init__(self, *levels, asking=(), firing=(), rate=30):
        self.next = list(levels) or [HEALTHY]
        self.turns = list(asking)
        self.fires = [*firing]
        self.steps = count(step=rate)
        self.cleaned = []

    def levels(self):
        now = self.next.pop(0) if len(self.next) > 1 else self.next[0]
        return replace(now, steps=next(self.steps))

    def actions(self):
        return []

    def freed(self):
        return 0.0

    def alerts(self):
        return self.turns.pop(0) if len(self.turns) > 1 else self.turns[0] if self.turns else []

    def firing(self):
        return self.fires

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

    def make(loop, said=None):
        return demo._Demonstration(None, loop, Narrator(Console(file=said or io.StringIO())))

    return make


@pytest.mark.parametrize(
    ("levels", "cleaned"),
    [
        ([DemoLevels(645, 80, 9e8)], ["emergency"]),
        ([HEALTHY, HEALTHY, DemoLevels(332, 53, 4e8), HEALTHY], ["emergency"]),
        ([DemoLevels(187, 12, 5e8)], []),
    ],
    ids=["after the cleanup", "later, by a slow trainer", "nothing"],
)
def test_what_leaked_is_cleaned_up_too(demonstration, levels, cleaned):
    loop = Loop(*levels)
    demonstration(loop)._see_leftovers_gone(HEALTHY)
    assert loop.cleaned == cleaned


@pytest.mark.parametrize(("rate", "seconds"), [(30, 20), (0.25, 35)])
def test_the_trainer_has_to_continue_without_the_leak_for_a_while(demonstration, clock, rate, seconds):
    demonstration(Loop(rate=rate))._see_leftovers_gone(HEALTHY)
    assert seconds <= clock.now < seconds + 10


def test_it_waits_for_every_alert_that_asked_for_a_cleanup_and_names_those_that_are_held(demonstration):
    loop, said = Loop(asking=[[CAUSED], [CAUSED], []], firing=[OLD]), io.StringIO()
    shown = demonstration(loop, said)
    loop.fires.append(WARNING)
    shown._see_silence()
    assert loop.turns == [[]]
    assert "the rules hold for some minutes: TrainerLimitExceeded (bodies/all, warning)" in said.getvalue()
    assert "TrainerStalled" not in said.getvalue()


def test_a_long_wait_says_what_it_waits_for_and_not_often(demonstration):
    loop, said = Loop(asking=[[CAUSED]] * 120 + [[]]), io.StringIO()
    demonstration(loop, said)._see_silence()
    lines = [line for line in said.getvalue().splitlines() if "waits" in line]
    assert 1 < len(lines) < 6
    assert all("for the end of the alerts" in line for line in lines)


def test_an_alert_that_stays_is_no_success(demonstration, monkeypatch):
    monkeypatch.setattr(demo, "PATIENCE", 0)
    loop = Loop(asking=[[CAUSED]])
    with pytest.raises(StackError, match=r"for the cleanup: TrainerLimitExceeded \(bodies/all, critical\)$"):
        demonstration(loop)._see_silence()


def test_a_trainer_that_does_not_start_is_not_waited_for_without_end(monkeypatch, tmp_path):
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nread line\n")
    silent.chmod(stat.S_IRWXU)
    monkeypatch.setattr(loop.sys, "executable", str(silent))
    monkeypatch.setattr(loop, "_STARTS_WITHIN", 0.1)
    with pytest.raises(StackError, match="trainer did not start: no output"):
        loop.SmallTrainer(Settings.from_environment({"HEAPWATCH_STATE": str(tmp_path)}))


def test_where_the_own_trainer_is_left_alone_a_small_one_leaks(monkeypatch):
    """Else the third of three demonstrations in a row waits for the end of a cooldown."""

    class Started:
        def __init__(self, settings):
            self.instance, self.port, self.ended = "127.0.0.1:1", 1, False

        def end(self):
            self.ended = True

    class Own:
        instance, port = "127.0.0.1:2", 2

        def __init__(self, stack, settings):
            pass

    settings = SimpleNamespace(checkout=Path())
    monkeypatch.setattr(loop, "SmallTrainer", Started)
    monkeypatch.setattr(loop, "ExampleTrainer", Own)
    monkeypatch.setattr(loop.health, "wait_scraped", lambda settings, instances: None)
    with loop.leaking_trainer(None, settings, lambda one: False) as trainer:
        assert type(trainer) is Own
    with loop.leaking_trainer(None, settings, lambda one: one.port == 2) as trainer:
        assert type(trainer) is Started
    assert trainer.ended
