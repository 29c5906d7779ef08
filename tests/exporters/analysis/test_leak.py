"""The definition in Python: what it calls a leak, and that the rules call the same ones."""

import random

import pytest

from benchmarks.leaks.python import firing_in_python
from benchmarks.leaks.replay import replay
from benchmarks.leaks.scenario import Scenario
from heapwatch.analysis.judge import judge
from heapwatch.analysis.leak import MEMORY
from heapwatch.analysis.observed import Series, observed
from heapwatch.analysis.readings import Component
from tests.prometheus.test_rules import ROOT

RULES = [ROOT / "prometheus" / "rules" / name for name in ("leak.yml", "leak_alerts.yml", "limits.yml")]
RSS = Series("trainer_process_resident_memory_bytes", (("role", "trainer"),))
VMS = Series("trainer_process_virtual_memory_bytes", (("role", "trainer"),))
START = Series("process_start_time_seconds")
SCRAPES = 320  # of 15 s: 80 minutes


def judged(series, minutes=80):
    samples = {
        one: [(15.0 * number, value) for number, value in enumerate(values) if value is not None]
        for one, values in series.items()
    }
    return judge(observed(samples, 0.0, 2 * minutes)).leaks


def first(verdicts):
    """The minute of the first verdict, or None."""
    return next((look / 2 for look, growth in enumerate(verdicts) if growth is not None), None)


def ramp(level, per_minute, since=40.0):
    return [level + per_minute * max(0.0, number / 4 - since) for number in range(SCRAPES)]


def memory(values, **more):
    return first(judged({RSS: values, START: [0.0] * SCRAPES, **more})[MEMORY])


@pytest.mark.parametrize("size", [0.2e9, 3e9, 40e9])
def test_a_fast_leak_is_told_within_eight_minutes_whatever_the_size(size):
    assert 44 < memory(ramp(size, 0.02 * size)) <= 48


def test_a_slow_leak_is_told_in_a_longer_window():
    assert 48 < memory(ramp(3e9, 0.004 * 3e9)) <= 60


def test_noise_is_no_leak():
    noise = random.Random(1)
    assert memory([3e9 * (1 + noise.gauss(0, 0.005)) for _ in range(SCRAPES)]) is None


def test_a_step_a_sawtooth_and_what_levels_off_are_no_leaks():
    assert memory([1e9 if number < 160 else 3e9 for number in range(SCRAPES)]) is None
    assert memory([1e9 + 30e6 * (number % 40) for number in range(SCRAPES)]) is None
    assert memory([3e9 - 2e9 * 0.98**number for number in range(SCRAPES)]) is None


def test_pages_touched_late_are_explained_and_new_ones_are_not():
    growing = ramp(2e9, 60e6)
    assert memory(growing) is not None
    series = {RSS: growing, START: [0.0] * SCRAPES, VMS: [9e9] * SCRAPES}
    assert first(judged(series)[MEMORY]) is None
    assert first(judged(series | {VMS: [level + 7e9 for level in growing]})[MEMORY]) is not None


def test_what_malloc_keeps_is_explained():
    kept = {Series("trainer_allocator_retained_bytes"): ramp(1e8, 19e6)}
    series = {RSS: ramp(2e9, 20e6), START: [0.0] * SCRAPES}
    assert first(judged(series)[MEMORY]) is not None
    assert first(judged(series | kept)[MEMORY]) is None


def test_a_bounded_buffer_that_fills_is_explained_and_a_leak_beside_it_is_not():
    replay_buffer = (("buffer", "replay"),)
    fill = {
        Series("trainer_buffer_bytes", replay_buffer): ramp(0, 50e6, since=0),
        Series("trainer_buffer_capacity_bytes", replay_buffer): [9e9] * SCRAPES,
    }
    filling = [2e9 + 50e6 * number / 4 for number in range(SCRAPES)]
    assert memory(filling) is not None
    series = {RSS: filling, START: [0.0] * SCRAPES, **fill}
    assert first(judged(series)[MEMORY]) is None
    leak = [level + 60e6 * max(0, number / 4 - 40) for number, level in enumerate(filling)]
    assert first(judged(series | {RSS: leak})[MEMORY]) is not None


def counted(values, *, age=5.0):
    series = {
        Series("trainer_bodies", (("type", "dynamic"),)): values,
        Series("trainer_exporter_sample_age_seconds", (("collector", "bodies"),)): [age] * SCRAPES,
        Series("trainer_progress_total", (("unit", "episode"),)): [float(n) for n in range(SCRAPES)],
        START: [0.0] * SCRAPES,
    }
    return first(judged(series)[Component("bodies", "dynamic")])


def test_a_list_that_grows_at_every_look_is_told_early_in_a_young_run():
    assert counted([float(number) for number in range(SCRAPES)]) <= 8


def test_a_count_that_is_not_read_is_not_judged():
    growing = [100 + 2.0 * number for number in range(SCRAPES)]
    assert counted(growing) is not None
    assert counted(growing, age=900.0) is None


GROWTH = Series("trainer_named_leaks_growth_bytes_per_minute")
SHARE = Series("trainer_named_leaks_share_ratio")
STEPS = Series("trainer_progress_total", (("unit", "step"),))
TRAINING = {STEPS: [100.0 * number for number in range(SCRAPES)]}


def named(level, per_minute, share=0.8, since=5.0, **more):
    """A young run whose pace varies too much for the windows of six minutes, and a name for its growth."""
    uneven = [level + per_minute * (number + 5 * (number // 4 % 4 == 0)) / 4 for number in range(SCRAPES)]
    names = [number >= 4 * since or None for number in range(SCRAPES)]
    series = {
        RSS: uneven,
        START: [0.0] * SCRAPES,
        GROWTH: [name and per_minute * share for name in names],
        SHARE: [name and share for name in names],
    }
    return series | more.get("series", TRAINING)


def told(series):
    return first(judged(series)[MEMORY])


@pytest.mark.parametrize("size", [0.2e9, 3e9, 40e9])
def test_growth_with_a_name_is_reported_within_eight_minutes(size):
    series = named(size, 0.012 * size)
    assert told(series) <= 8
    assert told({one: series[one] for one in series if one not in (GROWTH, SHARE)}) > 20


def test_a_name_for_the_smaller_part_of_the_growth_is_not_enough():
    assert told(named(1e9, 12e6, share=0.4)) > 20


def test_growth_with_a_name_that_is_not_material_waits_for_the_longer_windows():
    assert told(named(40e9, 20e6)) is None


def test_a_script_that_counts_no_steps_may_be_loading():
    assert 15 <= told(named(1e9, 12e6, series={})) <= 18


@pytest.mark.parametrize(("minutes", "reported"), [(3, 8), (8, 17)])
def test_growth_with_a_name_is_reported_when_two_cycles_have_ended(minutes, reported):
    """What lives for one cycle has ended by then. A process is 15 minutes old at the most."""
    epochs = [float(number // (4 * minutes)) for number in range(SCRAPES)]
    series = named(1e9, 12e6) | {Series("trainer_progress_total", (("unit", "epoch"),)): epochs}
    assert 2 * minutes <= told(series) <= reported
    assert agreed(series) == {("leak", "memory", "trainer")}


def test_what_a_declared_buffer_holds_is_not_reported_by_its_name():
    series = named(1e9, 12e6)
    held = [12e6 * number / 4 for number in range(SCRAPES)]
    series[Series("trainer_buffer_bytes", (("buffer", "replay"),))] = held
    series[Series("trainer_buffer_capacity_bytes", (("buffer", "replay"),))] = [3e9] * SCRAPES
    assert told(series) is None


def test_pages_touched_now_are_no_excuse_for_growth_with_a_name():
    series = named(1e9, 12e6) | {VMS: [4e9] * SCRAPES}
    assert told(series) <= 8
    assert ("leak", "memory", "trainer") in agreed(series)


def test_the_rules_agree_on_growth_with_a_name():
    assert ("leak", "memory", "trainer") in agreed(named(1e9, 12e6))
    assert agreed(named(1e9, 12e6, series={})) == {("leak", "memory", "trainer")}


def test_generations_of_any_pace():
    looks = 4 * 720
    generation = [float(number // 400) for number in range(looks)]  # 100 minutes each
    stairs = [5e9 + 25e9 * ((number + 160) // 400) for number in range(looks)]
    cycles = Series("trainer_progress_total", (("unit", "generation"),))
    told = first(judged({RSS: stairs, START: [0.0] * looks, cycles: generation}, 720)[MEMORY])
    assert 300 < told <= 405
    once = [5e9 + 25e9 * (number > 500) for number in range(looks)]
    assert first(judged({RSS: once, START: [0.0] * looks, cycles: generation}, 720)[MEMORY]) is None


def test_nothing_is_said_too_early_and_a_restart_begins_anew():
    assert memory(ramp(2e9, 60e6, since=0)) >= 24
    start = [0.0] * 200 + [3000.0] * 120
    series = {RSS: ramp(2e9, 60e6, since=51), START: start}
    assert first(judged(series)[MEMORY]) >= 50 + 24


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


def test_a_trainer_that_counts_steps_alone_is_judged_early():
    steps = {Series("trainer_progress_total", (("unit", "step"),)): [10.0 * n for n in range(SCRAPES)]}
    growing = {RSS: ramp(2e9, 60e6, since=1), START: [0.0] * SCRAPES}
    assert first(judged(growing)[MEMORY]) >= 24
    assert first(judged(growing | steps)[MEMORY]) <= 9


def test_what_is_loaded_before_the_first_step_is_no_leak():
    loading = [1e9 + min(60e6 * number / 4, 480e6) for number in range(SCRAPES)]
    steps = {
        Series("trainer_progress_total", (("unit", "step"),)): [
            max(0.0, 10.0 * (number - 32)) for number in range(SCRAPES)
        ]
    }
    assert first(judged({RSS: loading, START: [0.0] * SCRAPES, **steps})[MEMORY]) is None


def test_a_trainer_that_slows_down_leaks_by_the_step():
    """At 65 % of its speed from minute 43 on: around it the later half of six minutes is less steep."""
    speed = [1.0 if number < 172 else 0.65 for number in range(SCRAPES)]
    done = [sum(speed[: number + 1]) for number in range(SCRAPES)]
    leak = [2e9 + 15e6 * max(0.0, steps - 160) for steps in done]
    steps = {Series("trainer_progress_total", (("unit", "step"),)): [100 * steps for steps in done]}
    told = first(judged({RSS: leak, START: [0.0] * SCRAPES, **steps})[MEMORY])
    assert told < first(judged({RSS: leak, START: [0.0] * SCRAPES})[MEMORY])


def in_turns(per_minute):
    """A young run that collects for 80 of every 100 s, counting steps and leaking, and then updates."""
    collected = [sum((15 * n % 100) < 80 for n in range(number)) / 4 for number in range(SCRAPES)]
    return {
        RSS: [1e9 + per_minute * minutes for minutes in collected],
        STEPS: [1e8 + 6000.0 * minutes for minutes in collected],
        START: [0.0] * SCRAPES,
    }


def test_a_trainer_that_collects_and_updates_in_turns_leaks_by_the_step():
    series = in_turns(40e6)
    assert told(series) <= 10
    assert told(series | {STEPS: [10.0 * number for number in range(SCRAPES)]}) > 20
    assert agreed(series) == {("leak", "memory", "trainer")}


def test_the_virtual_memory_of_the_process_before_explains_nothing():
    """It started at minute 40 on the same port, and had reserved much; this one leaks from minute 41 on."""
    start = [0.0] * 160 + [2400.0] * 160
    resident = [2e9] * 160 + [1e9 + 30e6 * max(0.0, number / 4 - 41) for number in range(160, SCRAPES)]
    virtual = [40e9] * 160 + [level + 4e9 for level in resident[160:]]
    steps = Series("trainer_progress_total", (("unit", "step"),))
    counted = [10.0 * n for n in range(160)] + [10.0 * n for n in range(160)]
    series = {RSS: resident, START: start, VMS: virtual, steps: counted}
    assert 46 < first(judged(series)[MEMORY]) <= 51


def test_workers_are_judged_by_what_they_do_not_share():
    worker = (("role", "worker"),)
    resident = {Series("trainer_process_resident_memory_bytes", worker): ramp(8e9, 200e6)}
    unique = Series("trainer_process_unique_memory_bytes", worker)
    named = Component("memory", "worker")
    common = {RSS: [2e9] * SCRAPES, START: [0.0] * SCRAPES, **resident}
    assert first(judged(common)[named]) is not None
    assert first(judged({**common, unique: [1e9] * SCRAPES})[named]) is None
    assert first(judged({**common, unique: ramp(1e9, 30e6)})[named]) is not None
