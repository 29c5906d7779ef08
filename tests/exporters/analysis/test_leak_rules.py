"""The definition in Python and the rules call the same leaks, at the same time."""

import random

import pytest

from benchmarks.leaks.replay import firing_in_python, replay
from benchmarks.leaks.scenario import Scenario
from heapwatch.analysis.observed import Series
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


def by_the_rules(scenario):
    return {
        (alert["kind"], alert["resource"], alert["component"]): minute
        for minute, alerts in sorted(replay(scenario, RULES).items(), reverse=True)
        for alert in alerts
    }


def in_python(scenario):
    return {
        (alert["kind"], alert["resource"], alert["component"]): minute
        for minute, alerts in sorted(firing_in_python(scenario).items(), reverse=True)
        for alert in alerts
    }


def scenario_of(series):
    return Scenario(
        "all",
        {
            f"{one.name}{{{','.join(f'{name}={value!r}' for name, value in one.labels)}}}".replace(
                "'", '"'
            ): values
            for one, values in series.items()
        },
    )


def agreed(series):
    """What both statements find, at the same minute give or take one."""
    scenario = scenario_of(series)
    rules, python = by_the_rules(scenario), in_python(scenario)
    assert rules.keys() == python.keys()
    assert all(abs(rules[key] - python[key]) <= 1 for key in rules), (rules, python)
    return rules.keys()


@pytest.mark.parametrize(
    "series",
    [
        named(1e9, 12e6),
        named(1e9, 12e6, series={}),
        named(1e9, 12e6, share=0.4),
        named(1e9, 12e6, share=0.4, series={}),
        named(1e9, 12e6) | {VMS: [4e9] * SCRAPES},
        in_epochs(3),
        in_epochs(8),
        in_turns(40e6),
    ],
    ids=[
        "steps",
        "no steps",
        "a smaller part",
        "a smaller part, no steps",
        "pages touched now",
        "short epochs",
        "long epochs",
        "steps in turns",
    ],
)
def test_they_agree_on_growth_of_memory(series):
    first_minutes = {one: values[: 4 * 30] for one, values in series.items()}
    assert agreed(first_minutes) == {("leak", "memory", "trainer")}


def test_a_verdict_ends_with_the_process():
    """A trainer leaks from minute 40 on; at minute 50 another one is started at its address."""
    levels = ramp(2e9, 60e6)[:200] + [5e8] * 120
    series = {RSS: levels, START: [0.0] * 200 + [3000.0] * 120}
    scenario = scenario_of(series)
    for firing in (replay(scenario, RULES), firing_in_python(scenario)):
        leaking = {
            minute for minute, alerts in firing.items() if any(one["kind"] == "leak" for one in alerts)
        }
        assert min(leaking) < 49
        assert max(leaking) <= 51


def part_of_gpu(part):
    return Series("trainer_gpu_memory_part_bytes", (("device", "0"), ("part", part)))


def test_the_rules_call_the_same_leaks_at_the_same_time():
    """One trainer with a leak of each sort, and healthy things beside them."""
    noise = random.Random(2)
    series = {
        RSS: [level + noise.gauss(0, 4e6) for level in ramp(2e9, 12e6, since=30)],
        Series("trainer_process_resident_memory_bytes", (("role", "worker"),)): ramp(1e9, 30e6, since=40),
        Series("trainer_gpu_memory_allocated_bytes", (("device", "0"),)): [
            4e9 + 1e8 * (number % 12) for number in range(SCRAPES)
        ],
        part_of_gpu("other_pools"): ramp(5e8, 30e6, since=40),
        part_of_gpu("jax_in_use"): ramp(1e9, 20e6, since=50),
        part_of_gpu("cupy_in_use"): ramp(1e9, 25e6, since=45),
        part_of_gpu("cupy_cached"): ramp(1e9, 25e6, since=45),
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
    found = agreed(series)
    assert found >= {
        ("leak", "memory", "trainer"),
        ("leak", "memory", "worker"),
        ("leak", "bodies", "unknown"),
        ("leak", "objects", "jax_programs"),
        ("leak", "gpu_memory", "0 other_pools"),
        ("leak", "gpu_memory", "0 jax_in_use"),
        ("leak", "gpu_memory", "0 cupy_in_use"),
    }
    assert not found & {("leak", "gpu_memory", f"0 {library}_cached") for library in ("torch", "cupy")}


def test_the_rules_agree_on_retention_bounds_workers_and_a_young_process():
    """It started at minute 20 on the port of another that had reserved more, and counts steps alone."""
    lists, worker = (("list", "death"),), (("role", "worker"),)
    began = 80
    kept = [1e8 + 16e6 * max(0.0, number / 4 - 50) for number in range(SCRAPES)]
    series = {
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
    assert agreed(series) == {
        ("leak", "bodies", "static"),
        ("leak", "events", "death"),
        ("growth", "memory", "trainer"),
    }


@pytest.mark.parametrize(("minutes", "found"), [(14, set()), (60, {("growth", "memory", "trainer")})])
def test_what_malloc_keeps_is_reported_when_it_has_grown_for_a_quarter_of_an_hour(minutes, found):
    """The heap of a small trainer fragments for minutes before it stands still."""
    kept = [6e6 * min(number / 4, minutes) for number in range(SCRAPES)]
    series = {
        RSS: [370e6 + more for more in kept],
        Series("trainer_allocator_retained_bytes"): [1e7 + 0.95 * more for more in kept],
        START: [0.0] * SCRAPES,
        **TRAINING,
    }
    assert agreed(series) == found
