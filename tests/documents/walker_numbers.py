"""The numbers of the Walker document: what is said one step below each of them, and what at it.

The trainer's own log and the monitor read levels that a test sets; the schedule of the cleanups is counted.
"""

import io
import re
import runpy
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from examples.common.leaks import LeakSwitches
from examples.walker import LEAKS
from examples.walker.cleaning import Cleaner
from examples.walker.ecosystem import Ecosystem
from examples.walker.health import HealthLog
from examples.walker.leaking import Leaks
from examples.walker.learner import Learner
from heapwatch.cli import monitor
from heapwatch.cli.cleanup import cleanup_lines
from tests.documents.example import Example
from tests.support.repository import REPOSITORY

SCRIPT = REPOSITORY / "scripts" / "monitor_system_health.py"
TIME = r"\d\d:\d\d:\d\d: "


class World:
    """What the trainer's own log reads, with the document's levels but for some; memory is in bytes."""

    def __init__(self, **levels: float) -> None:
        self.set(**levels)

    def set(self, *, memory: float = 738.3e6, static: int = 1, dynamic: int = 155, food: int = 6) -> None:
        self.rss = memory
        self.types = {"static": static, "dynamic": dynamic, "terrain": 0, "agent": 30, "unknown": 0}
        self.food = [0.0] * food
        self.world = SimpleNamespace(bodyCount=sum(self.types.values()))

    def body_types(self) -> dict[str, int]:
        return self.types

    def memory_info(self) -> "World":
        return self


class Log:
    """The trainer's own log of a world, and its clock."""

    def __init__(self, world: World) -> None:
        self.now = 0.0
        self.health = HealthLog(world, clock=lambda: self.now)
        self.health._process = world

    def lines(self) -> list[str]:
        """What it prints now."""
        with redirect_stdout(io.StringIO()) as said:
            self.health.step(5558)
        return said.getvalue().splitlines()


def logged(**levels: float) -> list[str]:
    """What the log says of these levels, besides its two lines about the state."""
    _, _, *problems = Log(World(**levels)).lines()
    return [line.strip() for line in problems]


def grown(level: str, by: float) -> list[str]:
    """What the log says of growth at the end of ten minutes in which a level grew evenly."""
    world = World(food=0)
    log, began = Log(world), {"memory": 738.3e6, "static": 1, "dynamic": 155, "food": 0}[level]
    for line in range(31):
        log.now = 20.0 * line
        world.set(**{"food": 0, level: began + (by * line // 30)})
        said = [text.strip() for text in log.lines() if "GROWTH" in text]
        assert line >= 15 or not said, "growth is told from five minutes on"
    log.now += 20
    log.health.cleaned("emergency", {})
    assert not any("GROWTH" in text for text in log.lines()), "a cleanup is no growth"
    return said


class Boundary(NamedTuple):
    """A number of the document: what is said one byte or item below it, and what at it."""

    sentence: str
    level: str
    number: float
    below: Sequence[str]
    at: Sequence[str]


AGENTS_AND_GROUND = 31
LOGGED = (
    Boundary("Memory: Warning at 1000MB", "memory", 1e9, [], ["WARNING: memory = 1000.0MB (>= 1000.0MB)"]),
    Boundary(
        "Memory: Critical at 1500MB", "memory", 1.5e9,
        ["WARNING: memory = 1500.0MB (>= 1000.0MB)"], ["CRITICAL: memory = 1500.0MB (>= 1500.0MB)"],
    ),
    Boundary(
        "World Bodies: Warning at 500", "dynamic", 500 - AGENTS_AND_GROUND,
        [], ["WARNING: world_bodies = 500 (>= 500)"],
    ),
    Boundary(
        "World Bodies: Critical at 1000", "dynamic", 1000 - AGENTS_AND_GROUND,
        ["WARNING: world_bodies = 999 (>= 500)"], ["CRITICAL: world_bodies = 1000 (>= 1000)"],
    ),
    Boundary("Static Bodies: Critical at 300", "static", 300, [], ["CRITICAL: static_bodies = 300 (>= 300)"]),
    Boundary("Food: Warning: > 30 sources", "food", 31, [], ["WARNING: food_sources = 31 (> 30)"]),
    Boundary(
        "Food Sources: Warning at 50", "food", 50,
        ["WARNING: food_sources = 49 (> 30)"], ["WARNING: food_sources = 50 (>= 50)"],
    ),
)  # fmt: skip
GROWTH = (  # by so much in ten minutes
    Boundary(
        "Growth rate > 10 bodies/minute", "static", 101, [],
        ["BODY GROWTH ALERT: world_bodies +101 (10.1/min)", "BODY GROWTH ALERT: static_bodies +101 (10.1/min)"],
    ),
    Boundary(
        "Growth rate > 20MB/minute", "memory", 200e6 + 1, [],
        ["MEMORY GROWTH ALERT: memory +200.0MB (20.0MB/min)"],
    ),
    Boundary("Growth rate > 5/minute", "food", 51, [], ["FOOD GROWTH ALERT: food_sources +51 (5.1/min)"]),
)  # fmt: skip
AGGRESSIVE = (
    Boundary("--memory-warning 600", "memory", 600e6, [], ["WARNING: memory = 600.0MB (>= 600.0MB)"]),
    Boundary(
        "--memory-critical 900", "memory", 900e6,
        ["WARNING: memory = 900.0MB (>= 600.0MB)"], ["CRITICAL: memory = 900.0MB (>= 900.0MB)"],
    ),
    Boundary("--bodies-warning 300", "bodies", 300, [], ["WARNING: world_bodies = 300 (>= 300)"]),
    Boundary(
        "--bodies-critical 500", "bodies", 500,
        ["WARNING: world_bodies = 499 (>= 300)"], ["CRITICAL: world_bodies = 500 (>= 500)"],
    ),
)  # fmt: skip


def own_log(_example: Example) -> None:
    for boundary in LOGGED:
        below, at = (logged(**{boundary.level: boundary.number - step}) for step in (1, 0))
        assert (below, at) == (boundary.below, boundary.at), boundary.sentence
    for boundary in GROWTH:
        below, at = (grown(boundary.level, boundary.number - step) for step in (1, 0))
        assert (below, at) == (boundary.below, boundary.at), boundary.sentence


def own_log_when_aggressive(_example: Example) -> None:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HEAPWATCH_PROFILE", "aggressive")
        for boundary in AGGRESSIVE:
            level, other = ("dynamic", 31) if boundary.level == "bodies" else ("memory", 0)
            below, at = (logged(**{level: boundary.number - other - step}) for step in (1, 0))
            assert (below, at) == (boundary.below, boundary.at), boundary.sentence


def own_lines(_example: Example) -> None:
    """Every 20 s, over three periods; the same lines, in the same order, as the document's samples."""
    world = World()
    log, printed = Log(world), []
    for half_second in range(2 * 60 + 1):
        log.now = half_second / 2
        if lines := log.lines():
            printed.append(log.now)
            assert re.fullmatch(f"{TIME}Memory=738.3MB, Bodies=186, Food=6, Step=5558", lines[0])
            assert lines[1:] == ["   Body Types: Static=1, Dynamic=155, Terrain=0, Agent=30, Unknown=0"]
    assert printed == [0, 20, 40, 60]
    for line in range(31):
        log.now = 80.0 + 20 * line
        static = 1 + 156 * line // 30
        world.set(memory=1205.8e6, static=static, dynamic=1247 - 30 - static, food=67)
        if line == 0:
            log.health.cleaned("regular", {})
        said = [text.strip() for text in log.lines()]
    assert re.fullmatch(f"{TIME}Memory=1205.8MB, Bodies=1247, Food=67, Step=5558", said[0])
    assert said[1] == "Body Types: Static=157, Dynamic=1060, Terrain=0, Agent=30, Unknown=0"
    assert said[2:] == [
        "CRITICAL: world_bodies = 1247 (>= 1000)",
        "WARNING: memory = 1205.8MB (>= 1000.0MB)",
        "BODY GROWTH ALERT: static_bodies +156 (15.6/min)",
        "WARNING: food_sources = 67 (>= 50)",
    ]


def monitored(*options: str, memory: float = 738.3e6, bodies: int = 186) -> tuple[list[str], list[float]]:
    """What the script prints of a trainer with these levels, and the seconds that it waits between samples."""
    status: dict[str, Any] = {
        "training": "progressing",
        "performance": {"memory_mb": memory / 1e6, "step_count": 5558, "seconds_since_progress": 0.1},
        "entities": {"world_bodies": bodies, "static_bodies": 1, "total_agents": 30, "food_sources": 6},
        "memory": {"resident_bytes": {"trainer": memory}},
        "body_types": {"unknown": 0, "agent": 30, "terrain": 0, "dynamic": bodies - 31, "static": 1},
        "alerts": [],
    }
    waits: list[float] = []
    clock = SimpleNamespace(sleep=waits.append, time=time.time)
    with (
        patch.object(monitor, "get_json", lambda *_: status),
        patch.object(monitor, "time", clock),
        patch.object(monitor.signal, "signal"),
        patch.object(sys, "argv", [str(SCRIPT), *options]),
        redirect_stdout(io.StringIO()) as said,
        suppress(SystemExit),
    ):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    return said.getvalue().splitlines(), waits


def monitor_options(_example: Example) -> None:
    """Each limit at its boundary, by four options and by one; without them these levels are no problem."""
    usual = ("--count=1",)
    given = (*usual, *(f"{one.sentence.replace(' ', '=')}" for one in AGGRESSIVE))
    for boundary in AGGRESSIVE:
        for options in (given, (*usual, "--aggressive-thresholds")):
            below, at = (
                problems(*options, level=boundary.level, value=boundary.number - step) for step in (1, 0)
            )
            assert (below, at) == (boundary.below, boundary.at), boundary.sentence
        assert problems(*usual, level=boundary.level, value=boundary.number) == []
    for options, seconds in (((), 20.0), (("--interval=20",), 20.0), (("--interval", "25"), 25.0)):
        _, waits = monitored("--count=4", *options)
        assert waits == [seconds] * 3


def problems(*options: str, level: str, value: float) -> list[str]:
    lines, _ = monitored(*options, **{level: value})
    return [line.strip() for line in lines if re.match(r"   [A-Z]{2}", line)]


def monitor_samples(_example: Example) -> None:
    """The document's lines of normal operation, and of a cleanup."""
    (heading, *others), _ = monitored("--count=1")
    assert re.fullmatch(f"{TIME}Memory=738.3MB, Bodies=186, Food=6, Step=5558", heading)
    assert others == ["   Body types: Static=1, Dynamic=155, Terrain=0, Agent=30, Unknown=0"]
    answer = {
        "status": "done",
        "action": "emergency",
        "duration_seconds": 0.41,
        "freed": {"resident_memory_bytes": 349.6e6},
        "before": {"bodies": 1247, "entities": {"food_sources": 67}},
        "after": {"bodies": 198, "entities": {"food_sources": 10}},
        "errors": [],
    }
    assert cleanup_lines(answer) == [
        "Emergency cleanup completed in 0.4 s: 349.6MB freed",
        "   Bodies: 1247 -> 198 (-1049)",
        "   Food: 67 -> 10 (-57)",
    ]


def emergency_of_its_own(_example: Example) -> None:
    """Above 2 GB, or 1,500 bodies, and not at them."""
    for levels, wanted in (
        ({"dynamic": 1500 - AGENTS_AND_GROUND}, False),
        ({"dynamic": 1501 - AGENTS_AND_GROUND}, True),
        ({"memory": 2_000_000_000}, False),
        ({"memory": 2_000_000_001}, True),
    ):
        with redirect_stdout(io.StringIO()) as said:
            why = Log(World(**levels)).health.emergency()
        assert bool(why) == wanted, levels
        assert said.getvalue() == ("   EMERGENCY: Triggering emergency cleanup!\n" if wanted else "")


def kept(_example: Example) -> None:
    """What a cleanup leaves: 30 food sources or 10, 500 events of a list or none, 10,000 experiences."""
    ecosystem, learner = Ecosystem(), Learner()
    leaks = Leaks(LeakSwitches(REPOSITORY / "none", LEAKS), ecosystem, learner)  # type: ignore[arg-type]
    cleaner = Cleaner(ecosystem, learner, leaks)
    lists = ("consumption", "death", "predation")
    for action, food, events in (("regular", 30, 500), ("emergency", 10, 0)):
        for count in (0, food - 1, food, food + 1, 200):
            ecosystem.food[:] = [0.0] * count
            assert cleaner.clean(action)["food_sources"] == max(0, count - food)
            assert len(ecosystem.food) == min(count, food)
        for count in (0, 499, 500, 501, 2000):
            for name in lists:
                ecosystem.events[name] = [{}] * count
            assert cleaner.clean(action)["events"] == 3 * max(0, count - events)
            assert [len(ecosystem.events[name]) for name in lists] == [min(count, events)] * 3
            assert [ecosystem.events[name].maxlen for name in lists] == [500] * 3
        for count in (0, 9_999, 10_000, 10_001, 25_000):
            learner.replay = [None] * count
            assert cleaner.clean(action)["experiences"] == max(0, count - 10_000)
            assert len(learner.replay) == min(count, 10_000)
    for bounded, most in (
        (Learner().replay, 10_000),
        *((Ecosystem().events[name], 500) for name in lists),
    ):
        bounded.extend(range(most))
        assert (len(bounded), bounded[0]) == (most, 0)
        bounded.append(most)
        assert (len(bounded), bounded[0]) == (most, 1)
