"""A served trainer whose sources raise, hang, die and change while they are read, in real threads."""

import asyncio
import json
import signal
import sys
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import Box2D
import pytest
from prometheus_client.parser import text_string_to_metric_families

import heapwatch
from heapwatch.runtime.cleanup import CleanupRequest, described
from tests.support.exposed import get, value, values
from tests.support.waiting import wait_for


def scrape(watch):
    return list(text_string_to_metric_families(get(watch)))


@pytest.fixture
def watch():
    with heapwatch.start("faulted", port=0, interval=0.02, budget=1.0) as watch:
        yield watch


class Training:
    """A training loop in a thread of its own."""

    def __init__(self, watch, work=lambda: None):
        self._watch = watch
        self._work = work
        self._ended = threading.Event()
        self.longest = 0.0
        self._thread = threading.Thread(target=self._train)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join(30)
        assert not self._thread.is_alive()

    def _train(self):
        while not self._ended.is_set():
            self._work()
            self._watch.step()

    def steps(self):
        return self._watch.exporter.safe_point.steps


def test_a_source_that_hangs_does_not_stop_the_scrape_and_its_age_grows(watch):
    free, inside = threading.Event(), threading.Event()
    watch.entities("food_sources", lambda: 1)

    def hang():
        if not free.is_set():
            inside.set()
            assert free.wait(30)
        return 2

    free.set()
    watch.events("death", hang)
    with Training(watch) as training:
        wait_for(lambda: value(scrape(watch), "trainer_event_list_items", list="death") == 2)
        free.clear()
        assert inside.wait(20)
        stuck_at = training.steps()
        first = scrape(watch)
        wait_for(
            lambda: value(scrape(watch), "trainer_exporter_sample_age_seconds", collector="events") > 0.2
        )
        second = scrape(watch)
        ages = [
            value(families, "trainer_exporter_sample_age_seconds", collector="events")
            for families in (first, second)
        ]
        assert ages[0] < ages[1]
        assert value(second, "trainer_event_list_items", list="death") == 2
        assert training.steps() == stuck_at
        moved = value(second, "trainer_last_progress_timestamp_seconds")
        assert value(scrape(watch), "trainer_last_progress_timestamp_seconds") == moved
        free.set()
        wait_for(lambda: training.steps() > stuck_at)


def test_containers_that_change_while_they_are_read_break_nothing(watch):
    events, food = deque(maxlen=100), {}

    def work():
        events.append({"robot": len(food)})
        food[len(food) % 50] = object()
        food.pop(25, None)

    watch.events("death", events)
    watch.entities("food_sources", lambda: food)
    watch.size("food", lambda: food)
    watch.buffer("events", events)
    with Training(watch, work), ThreadPoolExecutor(4) as scrapers:
        for families in scrapers.map(lambda _: scrape(watch), range(12)):
            counts = values(families, "trainer_event_list_items", "list")
            assert all(0 <= count <= 100 for count in counts.values())
            assert 0 <= values(families, "trainer_entities", "type").get("food_sources", 0) <= 50


def test_worlds_that_are_destroyed_under_the_reader_end_their_series_and_come_back(watch):
    class Environment:
        def __init__(self):
            self.reset()

        def reset(self):
            self.world = Box2D.b2World()
            self.robots = [[self.world.CreateDynamicBody() for _ in range(3)] for _ in range(3)]

    environment = Environment()
    destroyed = threading.Event()
    watch.bodies(lambda: environment.world, owners=lambda: environment.robots)

    def work():
        if destroyed.is_set():
            environment.__dict__.pop("world", None)
        elif watch.exporter.safe_point.steps % 50 == 0 or not hasattr(environment, "world"):
            environment.reset()
        else:
            environment.world.Step(1 / 60, 1, 1)

    with Training(watch, work):
        wait_for(lambda: values(scrape(watch), "trainer_bodies", "type"))
        for _ in range(5):
            counts = values(scrape(watch), "trainer_bodies", "type")
            assert sum(counts.values()) == 9
            assert counts["unknown"] == 0
        destroyed.set()
        wait_for(lambda: not values(scrape(watch), "trainer_bodies", "type"))
        families = scrape(watch)
        assert value(families, "trainer_exporter_collect_errors_total", collector="bodies") > 0
        destroyed.clear()
        wait_for(lambda: values(scrape(watch), "trainer_bodies", "type"))


@pytest.mark.parametrize("kind", [SystemExit, asyncio.CancelledError, GeneratorExit])
def test_no_source_ends_training(watch, kind):
    def source(*_):
        raise kind("enough")

    class Odd:
        def __len__(self):
            raise kind("enough")

    odd = Odd()
    watch.entities("food_sources", source)
    watch.events("death", odd)
    watch.buffer("replay", odd)
    watch.size("policy", source)
    watch.bodies(source, owners=source)
    watch.on_cleanup(source)
    ticket = watch.exporter.cleanup_queue.submit(CleanupRequest())
    with Training(watch) as training:
        wait_for(lambda: watch.exporter.failures.counts["bodies"] > 1)
        assert f"{kind.__name__}, raised at test_faulted_sources.py" in ticket.wait(20).errors[0]
        before = training.steps()
        wait_for(lambda: training.steps() > before)
        counts = watch.exporter.failures.counts
        wait_for(lambda: all(counts[name] for name in ("entities", "events", "buffers", "sizes")))


def test_what_sources_and_cleanups_raise_is_in_the_log_alone(watch, caplog):
    def fail(*_):
        raise ValueError("no user alice@example.com")

    watch.entities("food", fail)
    watch.entities("odd", lambda: "alice@example.com")
    watch.size("policy", fail)
    watch.on_cleanup(fail)
    watch.on_cleanup(lambda: {"alice@example.com": 1})
    watch.step()
    result = watch.exporter.cleanup_queue.run(CleanupRequest("regular", "", "trainer"))
    assert len(result.errors) == 2
    assert "ValueError: no user alice@example.com, raised at test_faulted_sources.py" in caplog.text
    said = [get(watch, path) for path in ("metrics", "performance_status", "explain")]
    for text in (*said, described(result), json.dumps(result.as_dict())):
        assert "example.com" not in text


def test_a_signal_that_arrives_inside_a_source_still_ends_the_program(watch):
    def leave(number, frame):
        sys.exit(143)

    watch.entities("food_sources", lambda: signal.raise_signal(signal.SIGUSR1))
    before = signal.signal(signal.SIGUSR1, leave)
    try:
        with pytest.raises(SystemExit):
            watch.step()
    finally:
        signal.signal(signal.SIGUSR1, before)
