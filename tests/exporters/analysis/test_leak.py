"""What the definition in Python calls a leak; test_leak_rules.py compares it with the rules."""

import random

import pytest

from heapwatch.judge.observed import Series
from heapwatch.collectors.readings import MEMORY, Component
from tests.exporters.analysis.recordings import (
    GROWTH,
    RSS,
    SCRAPES,
    SHARE,
    START,
    STEPS,
    VMS,
    first,
    in_epochs,
    in_turns,
    judged,
    named,
    ramp,
    reported_after,
)


def memory(values, more=None, minutes=80):
    """The minute at which memory of these levels leaks, beside other series."""
    return first(judged({RSS: values, START: [0.0] * len(values)} | (more or {}), minutes)[MEMORY])


@pytest.mark.parametrize("size", [0.2e9, 3e9, 40e9])
def test_a_fast_leak_is_reported_within_eight_minutes_whatever_the_size(size):
    assert 44 < memory(ramp(size, 0.02 * size)) <= 48


def test_a_slow_leak_is_reported_in_a_longer_window():
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
    assert memory(growing, {VMS: [9e9] * SCRAPES}) is None
    assert memory(growing, {VMS: [level + 7e9 for level in growing]}) is not None


def test_what_malloc_keeps_is_explained():
    kept = {Series("trainer_allocator_retained_bytes"): ramp(1e8, 19e6)}
    assert memory(ramp(2e9, 20e6)) is not None
    assert memory(ramp(2e9, 20e6), kept) is None


def test_a_bounded_buffer_that_fills_is_explained_and_a_leak_beside_it_is_not():
    replay_buffer = (("buffer", "replay"),)
    fill = {
        Series("trainer_buffer_bytes", replay_buffer): ramp(0, 50e6, since=0),
        Series("trainer_buffer_capacity_bytes", replay_buffer): [9e9] * SCRAPES,
    }
    filling = [2e9 + 50e6 * number / 4 for number in range(SCRAPES)]
    assert memory(filling) is not None
    assert memory(filling, fill) is None
    leak = [level + 60e6 * max(0, number / 4 - 40) for number, level in enumerate(filling)]
    assert memory(leak, fill) is not None


def counted(values, *, age=5.0):
    series = {
        Series("trainer_bodies", (("type", "dynamic"),)): values,
        Series("trainer_exporter_sample_age_seconds", (("collector", "bodies"),)): [age] * SCRAPES,
        Series("trainer_progress_total", (("unit", "episode"),)): [float(n) for n in range(SCRAPES)],
        START: [0.0] * SCRAPES,
    }
    return first(judged(series)[Component("bodies", "dynamic")])


def test_a_list_that_grows_at_every_evaluation_is_reported_early_in_a_young_run():
    assert counted([float(number) for number in range(SCRAPES)]) <= 8


def test_a_count_that_is_not_read_is_not_judged():
    growing = [100 + 2.0 * number for number in range(SCRAPES)]
    assert counted(growing) is not None
    assert counted(growing, age=900.0) is None


@pytest.mark.parametrize("size", [0.2e9, 3e9, 40e9])
def test_growth_with_a_name_is_reported_within_eight_minutes(size):
    series = named(size, 0.012 * size)
    assert reported_after(series) <= 8
    assert reported_after({one: series[one] for one in series if one not in (GROWTH, SHARE)}) > 20


def test_a_name_for_the_smaller_part_of_the_growth_is_reported_within_six_minutes_of_it():
    assert reported_after(named(1e9, 12e6, share=0.4)) <= 5 + 6


def test_growth_with_a_name_that_is_not_material_waits_for_the_longer_windows():
    assert reported_after(named(40e9, 20e6)) is None


@pytest.mark.parametrize("share", [0.4, 0.8])
def test_so_it_is_in_a_script_that_counts_nothing(share):
    assert reported_after(named(1e9, 12e6, share=share, series={})) <= 5 + 6


@pytest.mark.parametrize(("minutes", "reported"), [(3, 8), (8, 17)])
def test_growth_with_a_name_is_reported_when_two_cycles_have_ended(minutes, reported):
    """What lives for one cycle has ended by then. A process is 15 minutes old at the most."""
    assert 2 * minutes <= reported_after(in_epochs(minutes)) <= reported


def test_a_leak_by_name_alone_ends_when_it_is_withdrawn_and_any_other_is_held():
    """A dictionary fills for twelve minutes at an even rate: that does not prove a leak."""
    for known, least, most in ((0.0, 12, 13), (None, 26, 80)):
        series = named(1e9, 20e6)
        for one in (GROWTH, SHARE):
            series[one] = [value if number < 48 else known for number, value in enumerate(series[one])]
        series[RSS] = [series[RSS][min(number, 48)] for number in range(SCRAPES)]
        leaking = [index / 2 for index, growth in enumerate(judged(series)[MEMORY]) if growth is not None]
        assert leaking[0] <= 9
        assert least <= leaking[-1] <= most


def test_what_a_declared_buffer_holds_is_not_reported_by_its_name():
    series = named(1e9, 12e6)
    held = [12e6 * number / 4 for number in range(SCRAPES)]
    series[Series("trainer_buffer_bytes", (("buffer", "replay"),))] = held
    series[Series("trainer_buffer_capacity_bytes", (("buffer", "replay"),))] = [3e9] * SCRAPES
    assert reported_after(series) is None


def test_pages_touched_now_are_no_excuse_for_growth_with_a_name():
    assert reported_after(named(1e9, 12e6) | {VMS: [4e9] * SCRAPES}) <= 8


def test_generations_of_any_pace():
    evaluations = 4 * 720
    generation = [float(number // 400) for number in range(evaluations)]  # 100 minutes each
    stairs = [5e9 + 25e9 * ((number + 160) // 400) for number in range(evaluations)]
    cycles = Series("trainer_progress_total", (("unit", "generation"),))
    assert 300 < memory(stairs, {cycles: generation}, 720) <= 405
    once = [5e9 + 25e9 * (number > 500) for number in range(evaluations)]
    assert memory(once, {cycles: generation}, 720) is None


def test_nothing_is_said_too_early_and_a_restart_starts_again():
    assert memory(ramp(2e9, 60e6, since=0)) >= 24
    start = [0.0] * 200 + [3000.0] * 120
    assert memory(ramp(2e9, 60e6, since=51), {START: start}) >= 50 + 24


def test_a_trainer_that_counts_steps_alone_is_judged_early():
    growing = ramp(2e9, 60e6, since=1)
    assert memory(growing) >= 24
    assert memory(growing, {STEPS: [10.0 * number for number in range(SCRAPES)]}) <= 9


def test_what_is_loaded_before_the_first_step_is_no_leak():
    loading = [1e9 + min(60e6 * number / 4, 480e6) for number in range(SCRAPES)]
    assert memory(loading, {STEPS: [max(0.0, 10.0 * (number - 32)) for number in range(SCRAPES)]}) is None


def test_a_trainer_that_slows_down_leaks_by_the_step():
    """At 65 % of its speed from minute 43 on: around it the later half of six minutes is less steep."""
    speed = [1.0 if number < 172 else 0.65 for number in range(SCRAPES)]
    done = [sum(speed[: number + 1]) for number in range(SCRAPES)]
    leak = [2e9 + 15e6 * max(0.0, steps - 160) for steps in done]
    assert memory(leak, {STEPS: [100 * steps for steps in done]}) < memory(leak)


def test_a_trainer_that_collects_and_updates_in_turns_leaks_by_the_step():
    series = in_turns(40e6)
    assert reported_after(series) <= 10
    assert reported_after(series | {STEPS: [10.0 * number for number in range(SCRAPES)]}) > 20


def test_the_virtual_memory_of_the_process_before_explains_nothing():
    """It started at minute 40 on the same port, and had reserved much; this one leaks from minute 41 on."""
    start = [0.0] * 160 + [2400.0] * 160
    resident = [2e9] * 160 + [1e9 + 30e6 * max(0.0, number / 4 - 41) for number in range(160, SCRAPES)]
    virtual = [40e9] * 160 + [level + 4e9 for level in resident[160:]]
    counted = 2 * [10.0 * number for number in range(160)]
    assert 46 < memory(resident, {START: start, VMS: virtual, STEPS: counted}) <= 51


def test_workers_are_judged_by_what_they_do_not_share():
    worker = (("role", "worker"),)
    resident = {Series("trainer_process_resident_memory_bytes", worker): ramp(8e9, 200e6)}
    unique = Series("trainer_process_unique_memory_bytes", worker)
    named = Component("memory", "worker")
    common = {RSS: [2e9] * SCRAPES, START: [0.0] * SCRAPES, **resident}
    assert first(judged(common)[named]) is not None
    assert first(judged({**common, unique: [1e9] * SCRAPES})[named]) is None
    assert first(judged({**common, unique: ramp(1e9, 30e6)})[named]) is not None
