"""The definition in Python and the rules call the same leaks, at the same time.

The trainers of a test are replayed together: promtool evaluates all rules of all trainers at once.
"""

import random

import pytest

from benchmarks.leaks.replay import firing_in_python, replay
from benchmarks.leaks.scenario import Scenario
from heapwatch.judge.observed import Series
from tests.exporters.analysis.recordings import (
    RSS,
    SCRAPES,
    START,
    TRAINING,
    VMS,
    in_epochs,
    in_turns,
    named,
    ramp,
)
from tests.support.repository import REPOSITORY

pytestmark = pytest.mark.slow

RULES = [REPOSITORY / "prometheus" / "rules" / name for name in ("leak.yml", "leak_alerts.yml", "limits.yml")]
LEAK, GROWTH = ("leak", "memory", "trainer"), ("growth", "memory", "trainer")


def minutes_of(trainers):
    """The minutes at which each alert fires, by trainer and alert: by the rules, and in Python."""
    series = {
        selector(one, name): values for name, every in trainers.items() for one, values in every.items()
    }
    scenario = Scenario("all", series)
    return by_trainer(replay(scenario, RULES)), by_trainer(firing_in_python(scenario))


def selector(series, trainer):
    labels = (*series.labels, ("instance", trainer))
    return f"{series.name}{{{','.join(f'{name}={value!r}' for name, value in labels)}}}".replace("'", '"')


def by_trainer(firing):
    found = {}
    for minute, alerts in firing.items():
        for alert in alerts:
            kind = (alert["kind"], alert["resource"], alert["component"])
            found.setdefault(alert["instance"], {}).setdefault(kind, set()).add(minute)
    return found


def agreed(rules, python):
    """What both find in a trainer, at the same minute give or take one."""
    assert rules.keys() == python.keys()
    begin = {kind: (min(rules[kind]), min(python[kind])) for kind in rules}
    assert all(abs(one - other) <= 1 for one, other in begin.values()), begin
    return set(rules)


def test_they_agree_on_growth_of_memory():
    trainers = {
        "steps": named(1e9, 12e6),
        "no steps": named(1e9, 12e6, series={}),
        "a smaller part": named(1e9, 12e6, share=0.4),
        "a smaller part, no steps": named(1e9, 12e6, share=0.4, series={}),
        "pages touched now": named(1e9, 12e6) | {VMS: [4e9] * SCRAPES},
        "short epochs": in_epochs(3),
        "long epochs": in_epochs(8),
        "steps in turns": in_turns(40e6),
    }
    rules, python = minutes_of(
        {name: {one: values[: 4 * 30] for one, values in series.items()} for name, series in trainers.items()}
    )
    assert {name: agreed(rules[name], python[name]) for name in trainers} == {
        name: {LEAK} for name in trainers
    }


def part_of_gpu(part):
    return Series("trainer_gpu_memory_part_bytes", (("device", "0"), ("part", part)))


def with_a_leak_of_each_sort():
    """And healthy things beside them."""
    noise = random.Random(2)
    return {
        RSS: [level + noise.gauss(0, 4e6) for level in ramp(2e9, 12e6, since=30)],
        Series("trainer_process_resident_memory_bytes", (("role", "worker"),)): ramp(1e9, 30e6, since=40),
        Series("trainer_gpu_memory_allocated_bytes", (("device", "0"),)): [
            4e9 + 1e8 * (number % 12) for number in range(SCRAPES)
        ],
        part_of_gpu("other_pools"): ramp(5e8, 30e6, since=40),
        part_of_gpu("jax_in_use"): ramp(1e9, 20e6, since=50),
        Series("trainer_jax_compiled_programs"): ramp(12, 6, since=40),
        part_of_gpu("torch_cached"): ramp(1e9, 30e6, since=40),
        part_of_gpu("free"): ramp(20e9, 30e6, since=40),
        part_of_gpu("other_processes"): [3e9] * SCRAPES,
        Series("trainer_bodies", (("type", "unknown"),)): ramp(0, 2, since=35),
        Series("trainer_bodies", (("type", "dynamic"),)): [
            155.0 + noise.randint(-3, 3) for _ in range(SCRAPES)
        ],
        Series("trainer_event_list_items", (("list", "death"),)): [
            float(max(0, number - 150)) for number in range(SCRAPES)
        ],
        Series("trainer_object_size_bytes", (("object", "stats"),)): [
            1e8 + 5e7 * (number > 200) for number in range(SCRAPES)
        ],
        Series("trainer_objects", (("type", "Agent"),)): [
            17.0 + 16 * (number // 40 > 3) for number in range(SCRAPES)
        ],
        Series("trainer_progress_total", (("unit", "generation"),)): [
            float(number // 24) for number in range(SCRAPES)
        ],
        START: [0.0] * SCRAPES,
    }


def young():
    """It started at minute 20 on the port of another that had reserved more, and counts steps alone."""
    lists, worker = (("list", "death"),), (("role", "worker"),)
    began = 80
    kept = [1e8 + 16e6 * max(0.0, number / 4 - 50) for number in range(SCRAPES)]
    return {
        RSS: [1e9 + (kept[number] if number >= began else 5e8) for number in range(SCRAPES)],
        VMS: [30e9 if number < began else 4e9 + kept[number] for number in range(SCRAPES)],
        Series("trainer_allocator_retained_bytes"): kept,
        Series("trainer_process_resident_memory_bytes", worker): ramp(8e9, 200e6),
        Series("trainer_process_unique_memory_bytes", worker): [1e9] * SCRAPES,
        Series("trainer_event_list_items", lists): [100.0 + 5 * (number > 240) for number in range(SCRAPES)],
        Series("trainer_event_list_capacity_items", lists): [90.0] * SCRAPES,
        Series("trainer_bodies", (("type", "static"),)): [
            max(0.0, number - began - 20.0) for number in range(SCRAPES)
        ],
        Series("trainer_progress_total", (("unit", "step"),)): [
            10.0 * (number % began if number < began else number - began) for number in range(SCRAPES)
        ],
        START: [0.0] * began + [15.0 * began] * (SCRAPES - began),
    }


def fragmenting(minutes):
    """The heap of a small trainer fragments for minutes before it stands still."""
    kept = [6e6 * min(number / 4, minutes) for number in range(SCRAPES)]
    return {
        RSS: [370e6 + more for more in kept],
        Series("trainer_allocator_retained_bytes"): [1e7 + 0.95 * more for more in kept],
        START: [0.0] * SCRAPES,
        **TRAINING,
    }


@pytest.fixture(scope="module")
def fired():
    return minutes_of(
        {
            "each sort": with_a_leak_of_each_sort(),
            "young": young(),
            "fragmenting for 14 minutes": fragmenting(14),
            "fragmenting for 60 minutes": fragmenting(60),
            # It leaks from minute 40 on; at minute 50 another one is started at its address.
            "restarted": {
                RSS: ramp(2e9, 60e6)[:200] + [5e8] * 120,
                START: [0.0] * 200 + [3000.0] * 120,
            },
        }
    )


def test_a_leak_of_each_sort_is_called_and_what_is_healthy_is_not(fired):
    found = agreed(*(firing["each sort"] for firing in fired))
    assert found >= {
        LEAK,
        ("leak", "memory", "worker"),
        ("leak", "bodies", "unknown"),
        ("leak", "objects", "jax_programs"),
        ("leak", "gpu_memory", "0 other_pools"),
        ("leak", "gpu_memory", "0 jax_in_use"),
    }
    assert ("leak", "gpu_memory", "0 torch_cached") not in found


@pytest.mark.parametrize(
    ("trainer", "found"),
    [
        ("young", {("leak", "bodies", "static"), ("leak", "events", "death"), GROWTH}),
        ("fragmenting for 14 minutes", set()),
        ("fragmenting for 60 minutes", {GROWTH}),
    ],
)
def test_they_agree_on_retention_bounds_workers_and_a_young_process(fired, trainer, found):
    assert agreed(*(firing.get(trainer, {}) for firing in fired)) == found


def test_a_verdict_ends_with_the_process(fired):
    for firing in fired:
        leaking = firing["restarted"][LEAK]
        assert min(leaking) < 49
        assert max(leaking) <= 51
