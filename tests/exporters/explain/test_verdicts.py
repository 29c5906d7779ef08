"""What the memory of a process alone says: a verdict, and when it is too early for one."""

from __future__ import annotations

import re
from math import exp

import pytest

from heapwatch.explain.findings import message
from heapwatch.explain.memory import ProcessMemory
from heapwatch.explain.received import explanation_of
from heapwatch.judge.component import MEMORY, WORKERS
from heapwatch.judge.memory import WARM_UP_SHARE
from heapwatch.judge.trainer import Sample
from heapwatch.text.numbers import wait
from tests.support.judged_memory import (
    MB,
    JudgedMemory,
    candidate,
    curve,
    curves,
    judged,
    memory,
    several_buffers,
)


@pytest.mark.parametrize(
    ("times", "verdict"),
    [
        ([], "too early"),
        ([0, 21, 31, 41], "too early"),
        ([0, 35, 36, 37, 38, 39, 40, 41], "too early"),
        (range(0, 41, 4), "healthy"),
    ],
)
def test_nothing_leaks_is_said_of_memory_that_was_read_often_and_long_enough(times, verdict):
    read = ProcessMemory(clock=lambda: 0.0)
    for time in times:
        read.resident.add(time, 500 * MB)
        read.private.add(time, 400 * MB)
    assert judged(45, read).verdict == verdict


def test_memory_of_child_processes_that_begins_to_grow_after_hours_is_a_leak():
    grown = JudgedMemory(clock=lambda: 0.0)
    for at in range(0, 6 * 3600, 5):
        workers = 1000 * MB + MB * max(0, at - 5 * 3600)
        for series, level in ((grown.private, 500 * MB), (grown.workers, workers), (grown.processes, 4)):
            series.add(at, level)
        if grown.judge.is_due(at):
            grown.judge.observe(at, Sample({MEMORY: 500 * MB, WORKERS: workers}, virtual=20e9))
    (finding,) = judged(6 * 3600, grown).findings
    assert (finding.kind, finding.is_leak) == ("worker", True)
    assert finding.bytes_per_minute == pytest.approx(60 * MB, rel=0.1)


def test_a_constant_trainer_does_not_slow_the_growth_of_its_child_processes():
    grown = memory(0, 300)
    for at in range(0, 300, 5):
        grown.workers.add(at, 1000 * MB + MB * at)
        grown.processes.add(at, 4)
    found = judged(300, grown)
    assert found.verdict == "too early"
    assert "Memory grows by 60 MB/min" in message(found)
    assert "So far, 100% of it is memory of the child processes" in message(found)
    assert "`heapwatch explain PID` of one of them names what grows there" in message(found)


def test_what_workers_take_as_they_are_started_is_no_growth():
    """Ten forks of a process of 2.4 GB, on a busy machine one every ten seconds."""
    grown = memory(0, 400)
    for at in range(0, 400, 5):
        started = min(10, at // 10)
        grown.workers.add(at, started * 2_400 * MB)
        grown.processes.add(at, started)
    assert [one.kind for one in judged(400, grown).findings] == []
    for at in range(400, 800, 5):
        grown.workers.add(at, 24_000 * MB + MB * (at - 400))
    (finding,) = judged(800, grown).findings
    assert finding.kind == "worker"


@pytest.mark.parametrize(
    ("seconds", "grown", "held", "verdict"),
    [
        (100, memory(0, 100), [candidate(600, 32, 100)], "healthy"),
        (1800, memory(0.32 * MB, 1800, start=40 * MB), [candidate(10_000, 32, 1800)], "leak"),
        (1800, memory(0.32 * MB, 1800, start=4000 * MB), [candidate(10_000, 32, 1800)], "healthy"),
        (400, curve(lambda at: (500 + 0.8 * min(at, 40)) * MB, 400), [], "healthy"),
        (
            400,
            curve(lambda at: (500 + 2 * min(at, 100)) * MB, 400),
            [candidate(2400, 20_000, 100, capacity=3960)],
            "healthy",
        ),
        (100, memory(48 * MB, 100, limit=1.58e9), several_buffers(1), "filling"),
        (100, memory(144 * MB, 100, limit=1.74e9), several_buffers(3), "will not fit"),
    ],
    ids=["numbers that weigh nothing", "numbers of a small process", "the same of a large one",
         "growth that has ended", "a full buffer",
         "a buffer of 600 MB, of which 1 GB is left", "three of them"],
)  # fmt: skip
def test_a_verdict(seconds, grown, held, verdict):
    found = judged(seconds, grown, *held)
    assert found.verdict == verdict
    assert verdict != "healthy" or {one.kind for one in found.findings} <= {"buffer"}


def test_growth_without_a_name_is_native_after_minutes_and_explains_nothing():
    early, late = judged(240, memory(48 * MB, 240)), judged(600, memory(48 * MB, 600))
    assert early.verdict == "too early"
    assert "48 MB/min" in message(early)
    assert late.verdict == "leak"
    for found in (early, late):
        assert found.findings[0].kind == "native"
        assert found.explained_share == 0.0


def test_growth_without_a_name_is_said_of_what_was_counted():
    found = judged(600, memory(48 * MB, 600), counted_seconds=119.0)
    assert found.findings[0].kind == "native"
    assert "no container accounts for" in message(found)
    counted = judged(600, memory(48 * MB, 600), counted_seconds=120.0)
    assert "no Python object accounts for" in message(counted)
    alone = message(judged(200, memory(48 * MB, 200)))
    assert "So far, 100% of it is memory that no container accounts for." in alone


def test_freed_memory_that_stays_is_of_the_allocator_after_minutes():
    assert judged(240, memory(48 * MB, 240, retained=1.0)).verdict == "too early"
    found = judged(600, memory(48 * MB, 600, retained=1.0))
    assert found.verdict == "leak"
    assert found.findings[0].kind == "allocator"
    returned = memory(0.5 * MB, 600, retained=300.0)
    assert judged(600, returned).verdict != "leak"


@pytest.mark.parametrize("start", [33 * MB, 2e9])
@pytest.mark.parametrize("minutes", [1, 10])
@pytest.mark.parametrize("retained", [0.0, 0.9])
def test_memory_that_levels_off_is_never_a_leak(start, minutes, retained):
    """A tenth of the process is loaded, and slower and slower: 63 % of it in so many minutes."""

    def level(at: float) -> float:
        return start * (1.1 - 0.1 * exp(-at / 60 / minutes))

    for seconds, risen in curves(level, range(60, 3600, 240), 64e9, retained):
        assert judged(seconds, risen).verdict != "leak", seconds


def test_a_program_that_still_loads_modules_is_starting():
    grown = memory(48 * MB, 100)
    grown.startup_end = 90.0
    assert judged(100, grown).verdict == "too early"


def test_too_early_lasts_forty_seconds():
    assert judged(39, memory(0, 39)).verdict == "too early"
    assert judged(41, memory(0, 41)).verdict == "healthy"
    unfinished = judged(100, memory(48 * MB, 100), walked=False)
    assert unfinished.verdict == "too early"
    assert "first search through the program's objects is not complete" in message(unfinished)
    assert judged(1600, memory(0, 1600), walked=False).verdict == "healthy"


@pytest.mark.parametrize(
    "level",
    [
        lambda at: 500 * MB + 0.5 * at * MB,  # 6 % a minute, and no more
        lambda at: 500 * MB + at * at / 100 * MB,  # faster and faster
        lambda at: 500 * MB + 30 * MB * (at // 60),  # in steps
        lambda at: 500 * MB + 60 * MB * max(0.0, at - 150) / 60,  # from a while ago on
    ],
)
def test_there_is_no_comfort_while_memory_rises_by_more_than_a_percent_a_minute(level):
    for seconds, risen in curves(level, range(180, 1200, 60)):
        found = judged(seconds, risen)
        assert found.verdict in ("too early", "growing", "leak"), (seconds, message(found))


def test_slowing_down_is_said_where_it_was_tested():
    slowing = judged(900, curve(lambda at: 500 * MB + 200 * MB * (1 - exp(-at / 200)), 900))
    assert slowing.verdict == "warm-up"
    assert "slows down" in message(slowing)
    ended = judged(900, curve(lambda at: 500 * MB + min(at, 600) * 0.3 * MB, 900))
    assert ended.verdict == "warm-up"
    # Half a percent a minute, faster and faster.
    faster = judged(900, curve(lambda at: 5000 * MB + (at / 900) ** 3 * 300 * MB, 900))
    assert faster.verdict == "too early"
    # Of late alone, by 0.8 % a minute.
    late = judged(900, curve(lambda at: 5000 * MB + 40 * MB * max(0.0, at - 450) / 60, 900))
    assert late.verdict == "too early"
    assert "slows down: a" not in message(faster)


def test_noise_of_a_healthy_program_is_not_mentioned():
    """A floor of 2 MB more in the last of ten minutes, or 0.13 MB more each minute: 8 MB in an hour."""
    for level in (lambda at: 300 * MB + 2 * MB * (at > 550), lambda at: 300 * MB + 0.13 * MB * at / 60):
        found = judged(600, curve(level, 600))
        assert found.verdict == "healthy"
        assert "/min" not in message(found)
    assert judged(1000, curve(lambda at: 300 * MB + 0.13 * MB * at / 60, 1000)).verdict == "too early"


def test_the_time_until_the_limit_is_a_range_that_narrows():
    """20 MB/min of 2 GB that are left: 100 minutes at the start."""
    ranges = []
    for minutes in (3, 10, 30):
        found = judged(60 * minutes, memory(20 * MB, 60 * minutes, limit=2.5e9))
        left = found.time_left
        assert left is not None
        assert left.least <= 60 * (100 - minutes) <= left.most
        assert "Memory ends in" in message(found)
        ranges.append(left.most / left.least)
    assert ranges[0] > ranges[1] > ranges[2] > 1
    assert judged(600, memory(0, 600)).time_left is None
    assert judged(40, memory(20 * MB, 40)).time_left is None
    again = explanation_of(found.as_json())
    assert again.time_left is not None
    assert again.time_left.least == pytest.approx(left.least, abs=1)
    # Other programs take some of it.
    grown = memory(20 * MB, 600, limit=2.5e9)
    grown.ceiling = (grown.resident.last or 0.0) + 100 * MB
    taken = judged(600, grown).time_left
    assert taken is not None
    assert taken.most < 600


def test_without_a_search_nothing_is_said_of_containers():
    found = judged(600, memory(48 * MB, 600), walked=False, searched=False)
    assert found.verdict == "leak"
    assert found.findings[0].type == "memory"
    waits = judged(100, memory(48 * MB, 100), walked=False, searched=False)
    assert "search" not in message(waits)
    assert "known in" in message(waits)


@pytest.mark.parametrize(("per_minute", "minutes"), [(48 * MB, 6), (2 * MB, 24)])
def test_when_it_is_known_whether_growth_lasts_depends_on_how_fast_it_is(per_minute, minutes):
    """The judge needs six minutes for growth of more than 1 % a minute, and 24 for slower growth."""
    detail = judged(120, memory(per_minute, 120)).detail
    (seconds,) = re.findall(r"known in (.*)\.", detail)
    assert seconds == wait(60 * minutes - 120 + WARM_UP_SHARE * 120)
