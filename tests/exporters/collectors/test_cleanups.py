from heapwatch.collectors.cleanups import CleanupCollector
from heapwatch.runtime.cleanup import CleanupQueue
from tests.exporters.exposed import value, values


class Trainer:
    def __init__(self):
        self.resident = 5_000_000

    def levels(self):
        return {"resident_memory_bytes": self.resident}

    def trim(self, action):
        self.resident -= 1_000_000
        return {"food": 57}


def test_cleanups_are_counted_from_zero():
    trainer = Trainer()
    queue = CleanupQueue(trainer.levels, lambda: None, lambda: None)
    collector = CleanupCollector(queue, lambda: True)
    queue.register(trainer.trim)
    assert values(collector.collect(), "trainer_cleanups_total", "action") == {"regular": 0, "emergency": 0}
    queue.submit(request_id="r1")
    assert value(collector.collect(), "trainer_cleanups_pending") == 1
    queue.run_pending()
    queue.run("regular", "", "trainer")
    families = list(collector.collect())
    assert value(families, "trainer_cleanups_pending") == 0
    assert value(families, "trainer_cleanups_total", action="emergency", trigger="api") == 1
    assert value(families, "trainer_cleanups_total", action="regular", trigger="trainer") == 1
    assert value(families, "trainer_cleanup_freed_bytes_total", action="regular") == 1_000_000
    assert value(families, "trainer_cleanup_removed_total", action="emergency", resource="food") == 57
    assert value(families, "trainer_cleanup_duration_seconds_count", action="emergency") == 1
    assert value(families, "trainer_cleanup_duration_seconds_sum", action="emergency") > 0
