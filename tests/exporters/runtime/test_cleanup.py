import json

import pytest

from heapwatch.runtime.cleanup import CleanupQueue, CleanupRequest, CleanupTarget, QueueFull


class Trainer:
    def __init__(self):
        self.food = list(range(67))
        self.woken = 0
        self.queue = CleanupQueue(self.levels, self.wake, lambda: None)

    def levels(self):
        return {
            "resident_memory_bytes": 1_000_000 + len(self.food),
            "entities": {"food_sources": len(self.food)},
        }

    def wake(self):
        self.woken += 1

    def trim(self, action):
        kept = 10 if action == "emergency" else 30
        removed = len(self.food) - kept
        del self.food[kept:]
        return {"food": removed}


@pytest.fixture
def trainer():
    return Trainer()


@pytest.fixture
def without_release(monkeypatch):
    """A thousand cleanups need no thousand garbage collections."""
    monkeypatch.setattr("heapwatch.runtime.cleanup.release", lambda: None)


def test_a_cleanup_runs_when_its_safe_point_comes_and_says_what_it_did(trainer):
    trainer.queue.register(trainer.trim)
    ticket = trainer.queue.submit(CleanupRequest("emergency", "too much food", "http", "r1"))
    assert trainer.woken == 1
    assert (ticket.state, ticket.wait(0)) == ("pending", None)
    trainer.queue.run_pending()
    result = ticket.wait(0)
    assert ticket.state == "done"
    document = json.loads(json.dumps(result.as_dict()))
    assert document.pop("duration_seconds") > 0
    assert document == {
        "status": "done",
        "request_id": "r1",
        "action": "emergency",
        "trigger": "http",
        "reason": "too much food",
        "before": {"resident_memory_bytes": 1_000_067, "entities": {"food_sources": 67}},
        "after": {"resident_memory_bytes": 1_000_010, "entities": {"food_sources": 10}},
        "freed": {"resident_memory_bytes": 57},
        "removed": {"food": 57},
        "errors": [],
        "memory_saved_mb": 0.0,
    }


def test_a_function_that_asks_for_the_target_gets_what_the_cleanup_is_for(trainer):
    reported = []
    trainer.queue.register(lambda action, target: reported.append((action, *target)))
    trainer.queue.register(lambda *, target: reported.append(target))
    trainer.queue.register(lambda action, times=1, **others: reported.append((action, times, others)))
    trainer.queue.register(lambda: reported.append("nothing"))
    ticket = trainer.queue.submit(CleanupRequest("regular", target=CleanupTarget("bodies", "static")))
    trainer.queue.run_pending()
    trainer.queue.run(CleanupRequest("regular", "routine", "trainer"))
    for given in (("bodies", "static"), ("", "")):
        assert reported[:4] == [("regular", *given), given, ("regular", 1, {}), "nothing"]
        del reported[:4]
    document = ticket.wait(0).as_dict()
    assert (document["resource"], document["component"]) == ("bodies", "static")
    assert not ticket.wait(0).errors


def test_the_same_request_is_the_same_cleanup(trainer):
    runs = []
    trainer.queue.register(runs.append)
    first = trainer.queue.submit(CleanupRequest(request_id="r1"))
    assert trainer.queue.submit(CleanupRequest(request_id="r1")) is first
    trainer.queue.run_pending()
    assert trainer.queue.submit(CleanupRequest(request_id="r1")) is first
    trainer.queue.run_pending()
    assert len(runs) == 1


@pytest.mark.parametrize("kind", [RuntimeError, SystemExit])
def test_every_function_runs_and_errors_are_reported(trainer, kind):
    def broken(action):
        raise kind("no such pool")

    trainer.queue.register(broken)
    trainer.queue.register(trainer.trim)
    result = trainer.queue.run(CleanupRequest("regular", "", "trainer"))
    assert result.removed == {"food": 37}
    (error,) = result.errors
    assert error.endswith(
        f"broken: {kind.__name__}, raised at test_cleanup.py:{broken.__code__.co_firstlineno + 1}"
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"food": -1}, "from 0 to"),
        ({"food": 1.5}, "cannot be interpreted as an integer"),
        ({3: 1}, "not allowed"),
        (17, "returned int"),
    ],
)
def test_an_answer_that_is_no_count_is_an_error(trainer, answer, expected, caplog):
    trainer.queue.register(lambda action: answer)
    result = trainer.queue.run(CleanupRequest("regular", "", "trainer"))
    assert result.removed == {}
    assert len(result.errors) == 1
    assert expected in caplog.text


@pytest.mark.parametrize("function", [None, 3, "trim", lambda a, b: None])
def test_what_cannot_be_called_with_the_action_is_refused(trainer, function):
    with pytest.raises(ValueError, match=r"callable|needs other arguments"):
        trainer.queue.register(function)


def test_a_method_does_not_keep_its_object(trainer):
    class Pool:
        def trim(self, action):
            raise AssertionError("never called")

    trainer.queue.register(Pool().trim)
    assert trainer.queue.run(CleanupRequest("regular", "", "trainer")).errors == []


@pytest.mark.usefixtures("without_release")
def test_the_queue_and_its_memory_are_bounded(trainer):
    for number in range(1000):
        trainer.queue.submit(CleanupRequest(request_id=f"r{number}"))
        trainer.queue.run_pending()
    assert len(trainer.queue._tickets) <= 64
    for number in range(16):
        trainer.queue.submit(CleanupRequest(request_id=f"waiting{number}"))
    with pytest.raises(QueueFull, match="16 cleanups are already waiting"):
        trainer.queue.submit(CleanupRequest(request_id="one more"))
    assert trainer.queue.pending() == 16


def test_a_cleanup_that_was_interrupted_stays_queued(trainer):
    interrupts = [KeyboardInterrupt()]

    def clean(action):
        if interrupts:
            raise interrupts.pop()

    trainer.queue.register(clean)
    ticket = trainer.queue.submit(CleanupRequest())
    with pytest.raises(KeyboardInterrupt):
        trainer.queue.run_pending()
    assert ticket.wait(0) is None
    trainer.queue.run_pending()
    assert ticket.wait(0).errors == []
    assert trainer.queue.pending() == 0


def test_each_cleanup_is_one_line_with_its_reason_what_it_freed_and_how_long_it_took(caplog):
    queue = CleanupQueue(lambda: {"resident_memory_bytes": 1_000_000}, lambda: None, lambda: None)
    queue.register(lambda: {"bodies": 3})
    with caplog.at_level("INFO", "heapwatch"):
        queue.run(CleanupRequest("emergency", "TrainerMemoryHigh\x1b[2J", "http"))
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("emergency cleanup asked for by http (TrainerMemoryHigh\\x1b[2J) took ")
    assert line.endswith(" s: 0 B freed, 3 bodies removed")
