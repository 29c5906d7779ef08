"""The numbers of the Walker document, tried with levels that a test sets."""

import io
import re
import runpy
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from examples.walker.cleaning import Cleaner
from examples.walker.ecosystem import Ecosystem
from examples.walker.health import HealthLog
from examples.walker.learner import Learner
from heapwatch.cli import monitor
from heapwatch.cli.cleanup import cleanup_lines
from tests.documents.boundaries import Boundary, tried
from tests.documents.example import Example
from tests.documents.rows import both
from tests.support.repository import REPOSITORY

SCRIPT = REPOSITORY / "scripts" / "monitor_system_health.py"
TIME = r"\d\d:\d\d:\d\d: "
NORMAL = f"{TIME}Memory=738.3MB, Bodies=186, Food=6, Step=5558"
BODY_TYPES = "Static=1, Dynamic=155, Terrain=0, Agent=30, Unknown=0"


class World:
    """What the trainer's own log reads, with the document's levels but for some; memory is in bytes."""

    def __init__(self, **levels: float) -> None:
        self.set(**levels)

    def set(self, *, memory: float = 738.3e6, static: int = 1, bodies: int = 186, food: int = 6) -> None:
        self.rss = memory
        dynamic = bodies - static - 30
        self.types = {"static": static, "dynamic": dynamic, "terrain": 0, "agent": 30, "unknown": 0}
        self.food = [0.0] * food
        self.world = SimpleNamespace(bodyCount=bodies)

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
        return printed(lambda: self.health.step(5558))


def printed(call: Callable[[], object]) -> list[str]:
    with redirect_stdout(io.StringIO()) as said:
        call()
    return [line.strip() for line in said.getvalue().splitlines()]


def logged(level: str, value: float, **others: float) -> list[str]:
    """What the log says at this level, besides its two lines about the state."""
    return Log(World(**others, **{level: value})).lines()[2:]


def logged_when_aggressive(level: str, value: float, **others: float) -> list[str]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HEAPWATCH_PROFILE", "aggressive")
        return logged(level, value, **others)


def growth_logged(level: str, by: int) -> list[str]:
    """What the log says of growth at the end of ten minutes in which a level grew evenly; without food."""
    world, began = World(), {"memory": 738_300_000, "static": 1, "food": 0}[level]
    log = Log(world)
    for line in range(31):
        log.now = 20.0 * line
        more = by * line // 30
        world.set(**{"food": 0, "bodies": 186 + more * (level == "static"), level: began + more})
        said = [text for text in log.lines() if "GROWTH" in text]
        assert line >= 15 or not said, "growth is logged only after five minutes"
    log.now += 20
    world.set(**{"food": 0, "bodies": 186 + 2 * by * (level == "static"), level: began + 2 * by})
    printed(lambda: log.health.cleaned("emergency", {}))
    assert not any("GROWTH" in text for text in log.lines()), "growth before a cleanup is over"
    return said


def emergency(level: str, value: float) -> list[str]:
    """What the trainer says of an emergency of its own."""
    health, reasons = Log(World(**{level: value})).health, []
    said = printed(lambda: reasons.append(health.emergency()))
    assert bool(reasons[0]) == bool(said)
    return said


def left_of_food(action: str, count: int) -> list[str]:
    ecosystem = Ecosystem()
    ecosystem.food[:] = [0.0] * count
    removed = Cleaner(ecosystem, Learner(), SimpleNamespace(history=[])).clean(action)
    assert removed["food_sources"] == count - len(ecosystem.food)
    return [f"{len(ecosystem.food)} of {count}"]


def left_of_events(action: str, count: int) -> list[str]:
    """Of each of the three lists, which are bounded again."""
    ecosystem = Ecosystem()
    assert ecosystem.events.keys() == {"consumption", "death", "predation"}
    for name in ecosystem.events:
        ecosystem.events[name] = [{}] * count
    removed = Cleaner(ecosystem, Learner(), SimpleNamespace(history=[])).clean(action)
    (left,) = {len(events) for events in ecosystem.events.values()}
    assert removed["events"] == 3 * (count - left)
    for events in ecosystem.events.values():
        events.extend([{}] * 1000)
        assert len(events) == 500
    return [f"{left} of {count}"]


def left_of_replay(count: int) -> list[str]:
    """By the buffer itself, and by a cleanup of one that lost its bound."""
    learner, kept = Learner(), Learner().replay
    learner.replay = [None] * count
    removed = Cleaner(Ecosystem(), learner, SimpleNamespace(history=[])).clean("regular")
    kept.extend(range(count))
    assert len(kept) == len(learner.replay) == count - removed["experiences"]
    assert isinstance(learner.replay, deque)
    return [f"{len(kept)} of {count}"]


def monitored(*options: str, memory: float = 738.3e6, bodies: int = 186) -> tuple[list[str], list[float]]:
    """What the script prints of a trainer with these levels, and how long it waits between samples."""
    status: dict[str, Any] = {
        "training": "progressing",
        "performance": {"memory_mb": memory / 1e6, "step_count": 5558, "seconds_since_progress": 0.1},
        "entities": {"world_bodies": bodies, "static_bodies": 1, "total_agents": 30, "food_sources": 6},
        "memory": {"resident_bytes": {"trainer": memory}},
        "body_types": {"unknown": 0, "agent": 30, "terrain": 0, "dynamic": bodies - 31, "static": 1},
        "alerts": [],
    }
    waits: list[float] = []
    with (
        patch.object(monitor, "get_json", lambda *_: status),
        patch.object(monitor, "time", SimpleNamespace(sleep=waits.append, time=time.time)),
        patch.object(monitor.signal, "signal"),
        patch.object(sys, "argv", [str(SCRIPT), *options]),
        redirect_stdout(io.StringIO()) as said,
        suppress(SystemExit),
    ):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    return [line.strip() for line in said.getvalue().splitlines()], waits


LIMITS = ("--memory-warning=600", "--memory-critical=900", "--bodies-warning=300", "--bodies-critical=500")


def monitored_with_limits(level: str, value: float, **others: float) -> list[str]:
    """By four options, and by one; without them these levels are no problem."""
    given, one, none = (
        monitored("--count=1", *options, **others, **{level: value})[0][2:]
        for options in (LIMITS, ("--aggressive-thresholds",), ())
    )
    assert (given, none) == (one, [])
    return given


LOGGED = [
    Boundary(
        "Memory: Warning at 1000MB", partial(logged, "memory"), 1e9,
        [], ["WARNING: memory = 1000.0MB (>= 1000.0MB)"],
    ),
    Boundary(
        "Memory: Critical at 1500MB", partial(logged, "memory"), 1.5e9,
        ["WARNING: memory = 1500.0MB (>= 1000.0MB)"], ["CRITICAL: memory = 1500.0MB (>= 1500.0MB)"],
    ),
    Boundary(
        "World Bodies: Warning at 500", partial(logged, "bodies"), 500,
        [], ["WARNING: world_bodies = 500 (>= 500)"],
    ),
    Boundary(
        "World Bodies: Critical at 1000", partial(logged, "bodies"), 1000,
        ["WARNING: world_bodies = 999 (>= 500)"], ["CRITICAL: world_bodies = 1000 (>= 1000)"],
    ),
    Boundary(
        "Static Bodies: Critical at 300", partial(logged, "static", bodies=499), 300,
        [], ["CRITICAL: static_bodies = 300 (>= 300)"],
    ),
    Boundary(
        "Food: Warning: > 30 sources", partial(logged, "food"), 31,
        [], ["WARNING: food_sources = 31 (> 30)"],
    ),
    Boundary(
        "Food Sources: Warning at 50", partial(logged, "food"), 50,
        ["WARNING: food_sources = 49 (> 30)"], ["WARNING: food_sources = 50 (>= 50)"],
    ),
    Boundary(
        "Growth rate > 10 bodies/minute, over ten minutes", partial(growth_logged, "static"), 101,
        [], [f"BODY GROWTH ALERT: {which}_bodies +101 (10.1/min)" for which in ("world", "static")],
    ),
    Boundary(
        "Growth rate > 20MB/minute, over ten minutes", partial(growth_logged, "memory"), 200_000_001,
        [], ["MEMORY GROWTH ALERT: memory +200.0MB (20.0MB/min)"],
    ),
    Boundary(
        "Food: Growth rate > 5/minute, over ten minutes", partial(growth_logged, "food"), 51,
        [], ["FOOD GROWTH ALERT: food_sources +51 (5.1/min)"],
    ),
]  # fmt: skip
EMERGENCY = [
    Boundary(
        "Triggered automatically when bodies > 1500", partial(emergency, "bodies"), 1501,
        [], ["EMERGENCY: Triggering emergency cleanup!"],
    ),
    Boundary(
        "Triggered automatically when memory > 2GB", partial(emergency, "memory"), 2_000_000_001,
        [], ["EMERGENCY: Triggering emergency cleanup!"],
    ),
]  # fmt: skip
KEPT = [
    Boundary(
        "Emergency food source limiting (max 30 sources)", partial(left_of_food, "regular"), 31,
        ["30 of 30"], ["30 of 31"],
    ),
    Boundary(
        "Event list size limiting", partial(left_of_events, "regular"), 501, ["500 of 500"], ["500 of 501"]
    ),
    Boundary(
        "Replay buffer: reduced from 25k to 10k experiences max", left_of_replay, 10_001,
        ["10000 of 10000"], ["10000 of 10001"],
    ),
    Boundary(
        "Reduces food sources to 10", partial(left_of_food, "emergency"), 11, ["10 of 10"], ["10 of 11"]
    ),
    Boundary("Clears all event lists", partial(left_of_events, "emergency"), 1, ["0 of 0"], ["0 of 1"]),
]  # fmt: skip
AGGRESSIVE = [
    # The document's own 738 MB is above the first limit.
    Boundary(
        sentence, partial(said, level, **{"memory": 500e6} if level == "bodies" else {}), number, below, at
    )
    for said in (monitored_with_limits, logged_when_aggressive)
    for sentence, level, number, below, at in (
        ("--memory-warning 600", "memory", 600e6, [], ["WARNING: memory = 600.0MB (>= 600.0MB)"]),
        (
            "--memory-critical 900", "memory", 900e6,
            ["WARNING: memory = 900.0MB (>= 600.0MB)"], ["CRITICAL: memory = 900.0MB (>= 900.0MB)"],
        ),
        ("--bodies-warning 300", "bodies", 300, [], ["WARNING: world_bodies = 300 (>= 300)"]),
        (
            "--bodies-critical 500", "bodies", 500,
            ["WARNING: world_bodies = 499 (>= 300)"], ["CRITICAL: world_bodies = 500 (>= 500)"],
        ),
    )
]  # fmt: skip
ALL = LOGGED + EMERGENCY + KEPT + AGGRESSIVE[:4]


def own_lines(_example: Example) -> None:
    """Every 20 s, over three periods; the same lines, in the same order, as the document's samples."""
    world = World()
    log, times = Log(world), []
    for half_second in range(2 * 60 + 1):
        log.now = half_second / 2
        if lines := log.lines():
            times.append(log.now)
            assert re.fullmatch(NORMAL, lines[0])
            assert lines[1:] == [f"Body Types: {BODY_TYPES}"]
    assert times == [0, 20, 40, 60]
    printed(lambda: log.health.cleaned("regular", {}))
    for line in range(31):
        log.now += 20
        world.set(memory=1205.8e6, static=1 + 156 * line // 30, bodies=1247, food=67)
        said = log.lines()
    assert re.fullmatch(f"{TIME}Memory=1205.8MB, Bodies=1247, Food=67, Step=5558", said[0])
    assert said[1:] == [
        "Body Types: Static=157, Dynamic=1060, Terrain=0, Agent=30, Unknown=0",
        "CRITICAL: world_bodies = 1247 (>= 1000)",
        "WARNING: memory = 1205.8MB (>= 1000.0MB)",
        "BODY GROWTH ALERT: static_bodies +156 (15.6/min)",
        "WARNING: food_sources = 67 (>= 50)",
    ]


def intervals(_example: Example) -> None:
    """The seconds between samples, over three periods: of itself 20."""
    for options, seconds in (((), 20.0), (("--interval=20",), 20.0), (("--interval", "25.5"), 25.5)):
        assert monitored("--count=4", *options)[1] == [seconds] * 3


def monitor_samples(_example: Example) -> None:
    """The document's lines of normal operation, and of a cleanup."""
    (heading, *others), _ = monitored("--count=1")
    assert re.fullmatch(NORMAL, heading)
    assert others == [f"Body types: {BODY_TYPES}"]
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


own_log, own_emergency, kept = tried(LOGGED), tried(EMERGENCY), tried(KEPT)
monitor_options = both(intervals, tried(AGGRESSIVE[:4]))
own_log_when_aggressive = tried(AGGRESSIVE[4:])
