from types import SimpleNamespace

import pytest

from heapwatch.collectors.progress import PhaseCollector, ProgressCollector
from tests.support.exposed import value, values


@pytest.fixture
def progress(failures, safe_point, clock):
    return ProgressCollector(failures, safe_point, clock)


def counts(progress):
    return values(progress.collect(), "trainer_progress_total", "unit")


def moved_at(progress):
    return value(progress.collect(), "trainer_last_progress_timestamp_seconds")


def test_units_count_from_the_first_progress_on(progress, safe_point):
    assert counts(progress) == {}
    assert moved_at(progress) is None
    safe_point.steps += 3
    progress.advance("step", 5)
    progress.advance("generation")
    progress.advance("epoch", 2)
    assert counts(progress) == {"step": 8, "generation": 1, "epoch": 2}


def test_the_time_of_the_last_progress_is_constant_when_training_does(progress, safe_point, clock):
    safe_point.steps += 1
    assert moved_at(progress) == clock.now
    stopped = clock.now
    clock.now += 1000
    assert moved_at(progress) == stopped
    progress.advance("generation")
    assert moved_at(progress) == clock.now


@pytest.mark.parametrize(
    ("unit", "count"),
    [
        *((unit, 1) for unit in ("", None, ["x"])),
        *((unit, count) for unit in ("epoch", "step") for count in (-1, None, "two")),
    ],
)
def test_a_bad_unit_or_count_never_stops_training(progress, failures, unit, count):
    progress.advance(unit, count)
    assert counts(progress) == {"other": 1}
    assert failures.counts["progress"] == 1


def test_the_longest_pause_between_signs_of_progress_is_kept(progress, safe_point, clock):
    for pause in (1, 900, 5):
        clock.now += pause
        progress.advance("generation")
        progress.observe()
    clock.now += 5000
    assert value(progress.collect(), "trainer_longest_pause_seconds") == 900


@pytest.mark.parametrize(("hours", "longest"), [(5, 900), (13, 60)])
def test_a_long_pause_is_forgotten_after_hours(progress, clock, hours, longest):
    for pause in (1, 900, *[60] * (60 * hours)):
        clock.now += pause
        progress.advance("generation")
        progress.observe()
    assert value(progress.collect(), "trainer_longest_pause_seconds") == longest


@pytest.fixture
def memory():
    """Resident bytes as a test sets them."""
    return SimpleNamespace(resident=1000)


@pytest.fixture
def phases(failures, safe_point, memory):
    return PhaseCollector(failures, safe_point, SimpleNamespace(read=lambda: memory.resident))


def runs(phases):
    return values(phases.collect(), "trainer_phase_duration_seconds_count", "phase")


def test_the_last_run_counts_and_the_time_adds_up(phases, memory):
    for resident in (1000, 2000):
        memory.resident = resident
        with phases.phase("train"):
            memory.resident -= 100
    memory.resident = 5
    families = list(phases.collect())
    assert value(families, "trainer_phase_memory_delta_bytes", phase="train") == -100
    assert value(families, "trainer_phase_end_resident_memory_bytes", phase="train") == 1900
    assert runs(phases) == {"train": 2}
    assert 0 < value(families, "trainer_phase_duration_seconds_sum", phase="train") < 10


def test_phases_nest_in_others_in_themselves_and_as_decorators(phases, memory):
    outer = phases.phase("outer")
    with outer:
        memory.resident += 1
        with outer, phases.phase("inner"):
            memory.resident += 10
        memory.resident += 100

    @phases.phase("descend")
    def descend(depth):
        """Go down."""
        return descend(depth - 1) + 1 if depth else 0

    assert descend(4) == 4
    assert (descend.__name__, descend.__doc__) == ("descend", "Go down.")
    assert runs(phases) == {"outer": 2, "inner": 1, "descend": 5}
    assert value(phases.collect(), "trainer_phase_memory_delta_bytes", phase="outer") == 111


def test_an_exception_passes_through_and_the_run_counts(phases):
    phases.phase("evolve").__exit__(None, None, None)  # without having entered
    assert runs(phases) == {}
    with pytest.raises(ZeroDivisionError), phases.phase("evolve"):
        _ = 1 / 0
    with phases.phase("evolve"):
        pass
    assert runs(phases) == {"evolve": 2}


@pytest.mark.parametrize("name", ["", None, ["x"]])
def test_a_bad_name_never_stops_training(phases, failures, name):
    with phases.phase(name):
        pass
    assert runs(phases) == {"other": 1}
    assert failures.counts["phases"] == 1


def test_the_end_of_a_phase_is_a_safe_point(phases, safe_point):
    done = []
    safe_point.on_visit.append(lambda: done.append("visited"))
    with phases.phase("train"):
        assert done == []
    assert done == ["visited"]
