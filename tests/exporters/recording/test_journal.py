import os
import threading
import time
from collections import deque
from types import SimpleNamespace

import pytest

import heapwatch
from heapwatch.collectors.families import gauge
from heapwatch.collectors.readings import Readings
from heapwatch.measure.objects.instances import Census
from heapwatch.recording.file import read_recording
from heapwatch.recording.journal import Journal
from tests.support.waiting import wait_for


class Kept:
    """Keeps points; raises or waits when told to."""

    name = "kept"

    def __init__(self):
        self.points, self.closed = [], 0
        self.error = None
        self.held = threading.Event()
        self.held.set()

    def take(self, point):
        self.held.wait(20)
        if self.error:
            raise self.error
        self.points.append(point)

    def close(self):
        self.closed += 1


@pytest.fixture(autouse=True)
def time_to_stop(monkeypatch):
    """On a busy machine the journal's thread takes longer to end than a trainer waits for it."""
    monkeypatch.setattr("heapwatch.recording.journal._STOP_SECONDS", 60)


@pytest.fixture
def kept():
    return Kept()


@pytest.fixture
def begin(failures):
    """Begins a journal; ends it."""
    journals = []

    def begin(read=lambda costly: Readings([]), **options):
        journals.append(Journal(failures, lambda: 1000, read, **options))
        return journals[-1]

    yield begin
    for journal in journals:
        journal.stop()


@pytest.fixture
def journal(begin):
    return begin()


def test_phases_and_cycles_become_points_with_the_memory_of_their_moment(journal, kept):
    journal.add_sink(kept)
    assert [(point.event, point.resident_bytes) for point in kept.points] == [("start", 1000)]  # at once
    journal.phase_ended("evaluate", 1500, 500)
    journal.progressed("generation", 1)
    journal.found_large((("ndarray", 2e7),))
    journal.stop()
    _, phase, cycle, large = kept.points
    assert (phase.event, phase.phase) == ("phase", "evaluate")
    assert (phase.resident_bytes, phase.delta_bytes) == (1500, 500)
    assert phase.cycle("generation") == 1
    assert (cycle.event, cycle.progress) == ("cycle", {"generation": 1})
    assert (large.event, large.large) == ("sample", (("ndarray", 2e7),))
    assert kept.closed == 1


def test_only_the_largest_unit_makes_cycles(journal, kept):
    journal.add_sink(kept)
    journal.progressed("generation", 1)
    for episode in range(16):
        journal.progressed("episode", episode)
    journal.progressed("games", 1)
    journal.progressed("generation", 1)
    journal.progressed("generation", 2)
    journal.stop()
    assert [point.progress for point in kept.points if point.event == "cycle"] == [
        {"generation": 2, "episode": 15}
    ]


def test_no_cycle_is_missing_where_the_journal_is_delayed(journal, kept, monkeypatch):
    journal.add_sink(kept)
    now = iter(range(1000))
    monkeypatch.setattr(
        "heapwatch.recording.journal.time", SimpleNamespace(time=lambda: next(now), monotonic=time.monotonic)
    )
    for generation in range(1, 7):
        journal.phase_ended("evaluate", 1000, 0)
        journal.phase_ended("train", 1000, 0)
        journal.progressed("generation", generation)
    journal.stop()
    phases = [(point.phase, point.cycle("generation")) for point in kept.points if point.phase]
    assert phases == [(phase, number) for number in range(1, 7) for phase in ("evaluate", "train")]


@pytest.mark.parametrize("interval", [1, 3, 7])
def test_a_sink_gets_the_cycles_that_it_needs_with_the_levels_of_their_moment(begin, kept, interval):
    """Cycles of no length at all; of the others the latest is passed on."""
    done = 0
    journal = begin(lambda costly: Readings([gauge("trainer_entities", "", "type", {"done": done})]))
    journal.add_sink(kept, lambda unit, total: unit == "epoch" and total % interval == 0)
    for done in range(1, 23):
        journal.progressed("epoch", done)
    done = 1000
    journal.stop()
    needed = [point for point in kept.points[1:] if point.progress["epoch"] % interval == 0]
    assert [point.progress["epoch"] for point in needed] == list(range(interval, 23, interval))
    assert [point.items["done"] for point in needed] == [point.progress["epoch"] for point in needed]


def test_a_sink_gets_a_cycle_that_it_needs_at_once(begin, kept, monkeypatch):
    monkeypatch.setattr("heapwatch.recording.journal._BATCH_SECONDS", 60)
    journal = begin()
    journal.add_sink(kept, lambda unit, total: True)
    for epoch in (1, 2, 3):
        journal.progressed("epoch", epoch)
        wait_for(lambda epoch=epoch: kept.points[-1].progress.get("epoch") == epoch)


def test_a_point_has_the_count_of_its_own_moment(begin, kept):
    latest = Census({"Agent": 2.0}, {"Agent": 1000.0})
    journal = begin(count=lambda: latest)
    journal.add_sink(kept)
    kept.held.clear()
    journal.phase_ended("evaluate", 1000, 0)
    latest = Census({"Agent": 90.0}, {"Agent": 2000.0})
    journal.phase_ended("train", 1000, 0)
    kept.held.set()
    journal.stop()
    counted = [(point.phase, point.objects, point.counted_at) for point in kept.points if point.phase]
    assert counted == [
        ("evaluate", {"Agent": 2.0}, {"Agent": 1000.0}),
        ("train", {"Agent": 90.0}, {"Agent": 2000.0}),
    ]


def test_a_sink_that_hangs_or_raises_neither_stops_training_nor_the_other_sinks(journal, failures, kept):
    other = Kept()
    journal.add_sink(kept)
    journal.add_sink(other)
    kept.held.clear()
    for number in range(10_000):
        journal.phase_ended(f"phase {number % 2000}", number, 1)
    kept.error = OSError("disk full")
    kept.held.set()
    journal.stop()
    assert failures.counts["journal"] > 0
    assert other.points[-1].resident_bytes == 9999
    assert (kept.closed, other.closed) == (1, 1)


def sample_all(watch):
    """Sample everything: on a busy machine a step leaves some of it to the next one."""
    point = watch.exporter.safe_point
    point.sample_now(*(task.sampler for task in point.tasks))


def test_a_watch_records_what_it_knows(tmp_path):
    class Environment:
        pass

    path, environments = tmp_path / "run.jsonl.gz", [Environment(), Environment()]
    deaths, experiences, bounded = deque(range(3), maxlen=100), list(range(7)), deque([1.0], maxlen=10)
    with heapwatch.Watch("erl") as watch:
        watch.objects(Environment)
        watch.size("environments", lambda: environments)
        watch.growth_limit("object_size", per_generation=1e6)
        watch.bodies(lambda: {"static": 5})
        watch.entities("food_sources", lambda: 2)
        watch.events("death", deaths)
        watch.buffer("experiences", lambda: experiences)
        watch.buffer("bounded", bounded)
        sample_all(watch)
        assert watch.record(path) == path
        with watch.phase("evaluate"):
            pass
        watch.progress("generation")
    run = read_recording(path)
    start = run.points[0]
    assert (run.trainer, start.event, start.objects) == ("erl", "start", {"Environment": 2})
    assert start.sizes["environments"] > 100
    assert start.growth_limit("object_size", "environments", "generation") == 1e6
    assert start.virtual_bytes > start.resident_bytes > 10e6
    assert [point.event for point in run.points[1:]] == ["phase", "cycle"]
    assert {name: count for name, count in start.items.items() if count} == {
        "static bodies": 5,
        "food_sources": 2,
        "death events": 3,
        "experiences buffer items": 7,
    }
    assert start.bounds == {"death events": 100}


def test_a_start_records_when_set_by_argument_or_environment(tmp_path, monkeypatch):
    with heapwatch.start("a", port=0, record=tmp_path / "told"):
        pass
    monkeypatch.setenv("HEAPWATCH_RECORD", str(tmp_path / "environment"))
    with heapwatch.start("b", port=0):
        pass
    assert read_recording(tmp_path / "told").trainer == "a"
    assert read_recording(tmp_path / "environment").trainer == "b"


def test_a_forked_child_writes_nothing_into_its_parents_record(tmp_path):
    path = tmp_path / "run.jsonl"
    with heapwatch.start("erl", port=0, record=path) as watch:
        child = os.fork()
        if child == 0:
            watch.progress("generation", 99)
            with watch.phase("in the child"):
                pass
            watch.stop()
            os._exit(0)
        os.waitpid(child, 0)
        watch.progress("generation")
    text = path.read_text()
    assert "in the child" not in text
    assert '"generation":1' in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(((interval,), "whole number above 0, got") for interval in (0, -1, 1.5, True, "10")),
        ((10, "step"), "generation, epoch, episode, got 'step'"),
    ],
)
def test_an_interval_or_unit_that_is_none_is_refused(arguments, message):
    with heapwatch.Watch() as watch, pytest.raises(ValueError, match=message):
        watch.memory_report_interval(*arguments)
