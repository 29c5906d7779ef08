import gc
import json
import logging
import threading
import weakref
from collections import deque
from itertools import pairwise

import Box2D
import pytest

import heapwatch
from heapwatch.recording.file import read_recording
from heapwatch.runtime.cleanup import CleanupRequest
from tests.support.exposed import value, values


class Trainer:
    """The shapes of a trainer, small."""

    def __init__(self):
        self.world = Box2D.b2World()
        self.robots = [[self.world.CreateDynamicBody() for _ in range(3)] for _ in range(2)]
        self.world.CreateStaticBody()
        self.food = list(range(67))
        self.deaths = deque(maxlen=5)
        self.replay = deque([[0.0] * 4 for _ in range(10)], maxlen=100)

    def clean(self, action):
        eaten = len(self.food) - 10
        del self.food[10:]
        return {"food": eaten}


@pytest.fixture
def trainer():
    return Trainer()


@pytest.fixture
def watch():
    with heapwatch.Watch("walker", interval=0.01, walker_names=True) as watch:
        yield watch


def exposed(watch):
    return watch.exporter.snapshots.take(30).families


def step_until_sampled(watch):
    """One visit may leave samplers to the next."""
    watch.step()
    while any(task.sampled_at is None for task in watch.exporter.safe_point.tasks):
        watch.step()


def declare(watch, trainer):
    watch.bodies(trainer.world, owners=lambda: trainer.robots)
    watch.entities("food_sources", lambda: trainer.food)
    watch.events("death", lambda: trainer.deaths)
    watch.buffer("replay", lambda: trainer.replay)
    watch.objects(Trainer)
    watch.size("food", lambda: trainer.food)
    watch.limit("memory", warning=1e9)
    watch.growth_limit("memory", per_minute=20e6)
    watch.on_cleanup(trainer.clean)


def test_everything_declared_is_exposed_after_steps(watch, trainer):
    declare(watch, trainer)
    step_until_sampled(watch)
    watch.progress("step", 10)
    families = exposed(watch)
    assert values(families, "trainer_bodies", "type") == {
        "static": 1,
        "dynamic": 4,
        "terrain": 0,
        "agent": 2,
        "unknown": 0,
    }
    assert values(families, "trainer_entities", "type") == {"food_sources": 67}
    assert values(families, "trainer_event_list_capacity_items", "list") == {"death": 5}
    assert values(families, "trainer_buffer_items", "buffer") == {"replay": 10}
    assert value(families, "trainer_object_size_bytes", object="food") > 67 * 8
    assert values(families, "trainer_objects", "type") == {"Trainer": 1}
    assert value(families, "trainer_progress_total", unit="step") > 10
    assert value(families, "trainer_limit", resource="memory", severity="warning") == 1e9
    assert value(families, "trainer_growth_limit", resource="memory", per="minute") == 20e6
    assert value(families, "process_start_time_seconds") > 0
    assert values(families, "trainer_info", "trainer") == {"walker": 1}


def test_attribute_paths_start_at_the_root(watch, trainer):
    watch.root = trainer
    watch.entities("food_sources", "food")
    watch.buffer("replay", "replay")
    trainer.food = [1]
    step_until_sampled(watch)
    assert values(exposed(watch), "trainer_entities", "type") == {"food_sources": 1}
    assert watch.root is trainer


def test_the_trainer_is_not_kept_alive(watch):
    trainer = Trainer()
    watch.root = trainer
    watch.entities("food_sources", "food")
    watch.on_cleanup(trainer.clean)
    watch.step()
    reference = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert reference() is None
    assert watch.root is None
    watch.exporter.safe_point.sample_now(watch.exporter.entities)
    assert values(exposed(watch), "trainer_entities", "type") == {}


def test_a_cleanup_asked_for_runs_at_the_next_step(watch, trainer):
    declare(watch, trainer)
    watch.step()
    ticket = watch.exporter.cleanup_queue.submit(CleanupRequest("emergency", "test", "http", "r1"))
    watch.step()
    result = ticket.wait(0)
    assert result.removed == {"food": 57}
    assert result.before["entities"] == {"food_sources": 67}
    assert result.after["entities"] == {"food_sources": 10}
    assert result.before["bodies"] == 7
    assert result.before["buffers"] == {"replay": 10}
    assert result.before["events"] == {"death": 0}
    assert result.errors == []
    assert json.dumps(result.as_dict())


def test_growth_counts_anew_after_an_emergency_or_a_request_not_a_routine(watch, monkeypatch):
    told = []
    explainer, queue = watch.exporter.explainer, watch.exporter.cleanup_queue
    monkeypatch.setattr(explainer, "cleaned", lambda action, freed, left: told.append((action, freed, left)))
    watch.step()
    watch.cleanup("regular", "routine")
    assert told == []
    done = [watch.cleanup("emergency", "too much")]
    tickets = [queue.submit(CleanupRequest(action, "asked", "http")) for action in ("regular", "emergency")]
    watch.step()
    done += [ticket.wait(0) for ticket in tickets]
    memory = "resident_memory_bytes"
    assert told == [(one.action, one.freed[memory], one.after[memory]) for one in done]


def test_after_a_cleanup_costly_levels_are_sampled_at_once(trainer):
    """However rarely they are due: an hour here, minutes for a costly census."""

    class Figure:
        pass

    kept = [Figure() for _ in range(3)]
    with heapwatch.Watch("walker", interval=3600) as watch:
        watch.objects(Figure)
        watch.size("robots", lambda: kept)
        watch.buffer("replay", lambda: trainer.replay)
        watch.on_cleanup(lambda action: (kept.clear(), trainer.replay.clear())[0])
        step_until_sampled(watch)
        before = exposed(watch)
        watch.exporter.cleanup_queue.submit(CleanupRequest("regular", "test", "http", "r1"))
        watch.step()
        watch.step()
        watch.step()  # one visit may leave samplers to the next
        after = exposed(watch)
    assert value(before, "trainer_objects", type="Figure") == 3
    assert value(after, "trainer_objects", type="Figure") == 0
    for name, labels in (
        ("trainer_object_size_bytes", {"object": "robots"}),
        ("trainer_buffer_bytes", {"buffer": "replay"}),
    ):
        assert value(after, name, **labels) < value(before, name, **labels)


def test_a_cleanup_that_steps_does_not_start_another(watch):
    watch.on_cleanup(lambda action: watch.step())
    watch.step()
    ticket = watch.exporter.cleanup_queue.submit(CleanupRequest())
    second = watch.exporter.cleanup_queue.submit(CleanupRequest())
    watch.step()
    assert ticket.wait(0).errors == second.wait(0).errors == []


def test_a_cleanup_waits_until_no_world_is_inside_its_step(watch):
    """The trainer steps its watch in a callback of the physics engine."""
    worlds, steps, found = [Box2D.b2World(), Box2D.b2World()], [], []
    watch.bodies(lambda: worlds)
    watch.on_cleanup(lambda action: found.append([world.locked for world in worlds]))

    class Listener(Box2D.b2ContactListener):
        def BeginContact(self, contact):
            watch.exporter.safe_point.due = True
            watch.step()
            steps.append(watch.exporter.cleanup_queue.pending())

    worlds[1].contactListener = listener = Listener()  # Box2D keeps no reference
    for _ in range(2):
        worlds[1].CreateDynamicBody().CreateFixture(shape=Box2D.b2PolygonShape(box=(1, 1)))
    watch.step()
    watch.exporter.cleanup_queue.submit(CleanupRequest())
    worlds[1].Step(1 / 60, 8, 3)
    assert steps == [1]
    assert found == []
    watch.step()
    assert found == [[False, False]]
    del listener


@pytest.mark.parametrize(
    ("declare_badly", "expected"),
    [
        (lambda watch: watch.entities("", []), "name '' is not allowed"),
        (lambda watch: watch.entities("food", 5), "a number would never change"),
        (lambda watch: watch.events("death", object()), "needs a sized container"),
        (lambda watch: watch.events("death", [], capacity=0), "whole number above 0"),
        (lambda watch: watch.buffer("replay"), "needs the buffer"),
        (lambda watch: watch.buffer("replay", items=object()), "must be functions"),
        (lambda watch: watch.buffer("replay", [], capacity=-1), "must be functions"),
        (lambda watch: watch.size("policy", "policy"), r"set watch\.root"),
        (lambda watch: watch.objects("Tensor"), "takes classes"),
        (lambda watch: watch.bodies(object()), "Box2D world"),
        (lambda watch: watch.bodies(lambda: None, classify="terrain"), "classify must be a function"),
        (lambda watch: watch.limit("ram", warning=1), "allowed: memory"),
        (lambda watch: watch.limit("memory"), "at least one of"),
        (lambda watch: watch.growth_limit("memory", per_minute=-1), "above 0"),
        (lambda watch: watch.on_cleanup(7), "callable"),
        (lambda watch: watch.cleanup("nuke"), "allowed: regular, emergency"),
        (lambda watch: watch.expect("Trainer", 2), "objects takes"),
        (lambda watch: watch.expect(Trainer, -1), "expect takes"),
        (lambda watch: watch.size_interval(0), "size_interval"),
        (lambda watch: heapwatch.Watch(interval=0), "interval"),
        (lambda watch: heapwatch.Watch(interval="1"), "interval"),
        (lambda watch: heapwatch.Watch(budget=2), "budget"),
    ],
)
def test_declarations_say_what_is_allowed(watch, declare_badly, expected):
    with pytest.raises(ValueError, match=expected):
        declare_badly(watch)


@pytest.mark.parametrize(
    "declare_one",
    [
        lambda watch: watch.entities("food", lambda: 1),
        lambda watch: watch.events("death", lambda: 1),
        lambda watch: watch.buffer("replay", lambda: [1]),
        lambda watch: watch.size("policy", lambda: [1]),
        lambda watch: watch.bodies(lambda: {"static": 1}),
    ],
)
def test_a_name_used_twice_is_refused_and_the_first_stays(watch, declare_one):
    declare_one(watch)
    with pytest.raises(ValueError, match="watched already"):
        declare_one(watch)
    watch.step()
    assert not watch.exporter.failures.counts


def test_after_stop_everything_is_harmless(watch, trainer):
    declare(watch, trainer)
    watch.stop()
    watch.stop()
    for _ in range(3):
        watch.step()
        watch.progress("generation")
        with watch.phase("train"):
            pass
    assert watch.port is None
    assert watch.server is None
    assert watch.exporter.registration is None


def test_checkpoints_are_noted_and_growth_is_reported_by_label(watch, caplog):
    watch.objects(Trainer)
    alive = [Trainer()]
    step_until_sampled(watch)
    with caplog.at_level(logging.INFO, logger="heapwatch"):
        watch.checkpoint("baseline")
        alive += [Trainer(), Trainer()]
        watch.checkpoint("after_evaluation")
    assert [point.label for point in watch.checkpoints] == ["baseline", "after_evaluation"]
    assert watch.growth_since("baseline").objects == {"Trainer": 2}
    assert "checkpoint after_evaluation" in caplog.text
    with pytest.raises(ValueError, match="no checkpoint is called 'after_training'"):
        watch.growth_since("after_training")


def test_more_objects_than_expected_are_said_at_once_and_have_a_limit(watch, caplog):
    class Market:
        pass

    watch.expect(Market, 2)
    alive = [Market(), Market()]
    forgotten = Market()
    forgotten.myself = forgotten
    del forgotten  # waits for the collector, so it is not alive
    step_until_sampled(watch)
    assert "expected" not in caplog.text
    alive.append(Market())
    watch.exporter.safe_point.sample_now(*watch.exporter.objects.samplers)
    assert caplog.messages == ["Market: 3 are alive, 2 expected"]
    assert value(exposed(watch), "trainer_limit", resource="objects", component="Market") == 3
    alive.clear()


@pytest.mark.parametrize(("at_once", "expected"), [(1, [10, 20]), (3, [12, 21])])
def test_sizes_are_measured_at_the_cycles_asked_for(at_once, expected):
    watch = heapwatch.Watch("trainer", interval=3600.0)
    stats = {}
    watch.size("stats", stats)
    watch.size_interval(10, "epoch")
    watch.step()
    measured = {}
    for epoch in range(at_once, 22, at_once):
        stats |= {f"{epoch}/{number}": number for number in range(1000)}
        watch.progress("epoch", at_once)
        watch.step()
        measured[epoch] = sizes_of(watch)
    changes = [epoch for before, epoch in pairwise(measured) if measured[epoch] != measured[before]]
    assert changes == expected


def sizes_of(watch):
    return [sample.value for family in watch.exporter.sizes.collect() for sample in family.samples]


def test_large_objects_are_returned_and_recorded(watch, tmp_path):
    path = watch.record(tmp_path / "run.jsonl")
    kept = [bytes(64_000_000)]
    found = watch.large_objects(60e6)
    assert [one.type for one in found] == ["bytes"]
    assert found[0].nbytes == pytest.approx(64e6, rel=0.01)
    watch.progress("episode", 1)
    watch.stop()
    assert kept
    assert any(point.large for point in read_recording(path).points)


def test_a_thread_may_claim_the_safe_point(watch):
    cleaned = []
    watch.on_cleanup(lambda action: cleaned.append(threading.current_thread()))
    watch.step()

    def take_over():
        watch.claim()
        watch.exporter.cleanup_queue.submit(CleanupRequest("regular", "test"))
        watch.step()

    thread = threading.Thread(target=take_over)
    thread.start()
    thread.join()
    watch.step()
    assert cleaned == [thread]
