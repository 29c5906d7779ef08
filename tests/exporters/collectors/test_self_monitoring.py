import pytest

from heapwatch.collectors.self_monitoring import CleanupCollector, ExporterCollector
from heapwatch.runtime.cleanup import CleanupQueue, CleanupRequest
from tests.support.exposed import value, values


class Sampler:
    name = "bodies"
    interval = 2.0

    def __init__(self, clock):
        self._clock = clock

    def sample(self):
        self._clock.work(0.05)


@pytest.fixture
def exporter(failures, safe_point, clock):
    return ExporterCollector(failures, safe_point, lambda: {"process": 0.002}, clock)


def test_errors_of_samplers_start_at_zero_so_that_the_first_is_an_increase(
    exporter, failures, safe_point, clock
):
    name = "trainer_exporter_collect_errors_total"
    safe_point.schedule(Sampler(clock), anywhere=False)
    assert values(exporter.collect(), name, "collector") == {"exporter": 0, "bodies": 0}
    failures.record("gpu", "device 0", OSError("fell off the bus"))
    assert values(exporter.collect(), name, "collector") == {"exporter": 0, "bodies": 0, "gpu": 1}


def test_the_cost_and_age_of_samples(exporter, safe_point, clock):
    safe_point.schedule(Sampler(clock), anywhere=False)
    assert values(exporter.collect(), "trainer_exporter_sample_age_seconds", "collector") == {}
    safe_point.visit(stepping=True)
    clock.now += 30
    families = list(exporter.collect())
    for name, expected in (("age_seconds", 30), ("seconds_total", 0.05), ("interval_seconds", 2.0)):
        found = value(families, f"trainer_exporter_sample_{name}", collector="bodies")
        assert found == pytest.approx(expected)
    assert value(families, "trainer_exporter_budget_ratio") == 0.01
    assert value(families, "trainer_exporter_safe_point_age_seconds") == pytest.approx(30.05)
    assert value(families, "trainer_exporter_collect_seconds", collector="other") == 0.002


def test_cleanups_are_counted_from_zero():
    resident = [5_000_000]

    def trim(action):
        resident[0] -= 1_000_000
        return {"food": 57}

    queue = CleanupQueue(lambda: {"resident_memory_bytes": resident[0]}, lambda: None, lambda: None)
    collector = CleanupCollector(queue, lambda: True)
    queue.register(trim)
    assert values(collector.collect(), "trainer_cleanups_total", "action") == {"regular": 0, "emergency": 0}
    queue.submit(CleanupRequest(request_id="r1"))
    queue.run_pending()
    queue.run(CleanupRequest("regular", "", "trainer"))
    families = list(collector.collect())
    assert value(families, "trainer_cleanups_total", action="emergency", trigger="api") == 1
    assert value(families, "trainer_cleanups_total", action="regular", trigger="trainer") == 1
    assert value(families, "trainer_cleanup_freed_bytes_total", action="regular") == 1_000_000
    assert value(families, "trainer_cleanup_removed_total", action="emergency", resource="food") == 57
    assert value(families, "trainer_cleanup_duration_seconds_count", action="emergency") == 1
    assert value(families, "trainer_cleanup_duration_seconds_sum", action="emergency") > 0
