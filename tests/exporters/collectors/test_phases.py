import threading

import pytest

from heapwatch.collectors.phases import PhaseCollector
from tests.exporters.exposed import value, values


class Memory:
    """Resident bytes as a test sets them."""

    def __init__(self):
        self.resident = 1000

    def read(self):
        return self.resident


@pytest.fixture
def memory():
    return Memory()


@pytest.fixture
def phases(failures, safe_point, memory):
    return PhaseCollector(failures, safe_point, memory)


def runs(phases):
    return values(phases.collect(), "trainer_phase_duration_seconds_count", "phase")


def test_a_phase_tells_its_end_its_change_and_its_time(phases, memory):
    with phases.phase("evaluate"):
        memory.resident = 1400
    memory.resident = 900
    families = list(phases.collect())
    assert value(families, "trainer_phase_end_resident_memory_bytes", phase="evaluate") == 1400
    assert value(families, "trainer_phase_memory_delta_bytes", phase="evaluate") == 400
    assert value(families, "trainer_phase_duration_seconds_count", phase="evaluate") == 1
    assert 0 < value(families, "trainer_phase_duration_seconds_sum", phase="evaluate") < 10


def test_the_last_run_counts_and_the_time_adds_up(phases, memory):
    for resident in (1000, 2000):
        memory.resident = resident
        with phases.phase("train"):
            memory.resident -= 100
    families = list(phases.collect())
    assert value(families, "trainer_phase_memory_delta_bytes", phase="train") == -100
    assert value(families, "trainer_phase_end_resident_memory_bytes", phase="train") == 1900
    assert runs(phases) == {"train": 2}


def test_phases_nest_in_others_and_in_themselves(phases, memory):
    outer = phases.phase("outer")
    with outer:
        memory.resident += 1
        with outer, phases.phase("inner"):
            memory.resident += 10
        memory.resident += 100
    assert runs(phases) == {"outer": 2, "inner": 1}
    assert value(phases.collect(), "trainer_phase_memory_delta_bytes", phase="outer") == 111


def test_a_decorated_function_may_recurse_and_keeps_its_name(phases):
    @phases.phase("descend")
    def descend(depth):
        """Go down."""
        return descend(depth - 1) + 1 if depth else 0

    assert descend(4) == 4
    assert runs(phases) == {"descend": 5}
    assert (descend.__name__, descend.__doc__) == ("descend", "Go down.")


def test_an_exception_passes_through_and_the_run_counts(phases):
    with pytest.raises(ZeroDivisionError), phases.phase("evolve"):
        _ = 1 / 0
    with phases.phase("evolve"):
        pass
    assert runs(phases) == {"evolve": 2}


def test_leaving_without_entering_does_nothing(phases):
    phases.phase("odd").__exit__(None, None, None)
    assert runs(phases) == {}


@pytest.mark.parametrize("name", ["", 3, None, "a\nb", ["x"], b"x"])
def test_a_bad_name_never_stops_training(phases, failures, name):
    with phases.phase(name):
        pass
    assert runs(phases) == {"other": 1}
    assert failures.counts["phases"] == 1


def test_names_from_data_are_bounded(phases, failures):
    for generation in range(1000):
        with phases.phase(f"generation {generation}"):
            pass
    found = runs(phases)
    assert len(found) == 65
    assert sum(found.values()) == 1000


def test_the_end_of_a_phase_is_a_safe_point(phases, safe_point):
    done = []
    safe_point.on_visit.append(lambda: done.append("visited"))
    with phases.phase("train"):
        assert done == []
    assert done == ["visited"]


def test_two_threads_may_be_in_the_same_phase(phases):
    inside = threading.Barrier(2)

    def run():
        for _ in range(100):
            with phases.phase("shared"):
                inside.wait(10)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert runs(phases).keys() == {"shared"}
    assert value(phases.collect(), "trainer_phase_duration_seconds_sum", phase="shared") > 0
