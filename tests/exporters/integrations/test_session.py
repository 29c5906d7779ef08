import logging
import socket
from collections import deque

import heapwatch
from heapwatch.collectors.readings import Readings
from heapwatch.integrations.session import Session, accessor


class Agent:
    def __init__(self):
        self.replay_memory = deque([1, 2, 3], maxlen=10)


def test_a_session_counts_from_where_the_run_started(exposed):
    session = Session("t", "test", None, port=0)
    session.begin()
    session.start_at("step", 1000)
    session.count("step", 1010)
    session.count("step", 1025)
    session.end()
    assert exposed[-1].value("trainer_progress_total", unit="step") == 25
    assert session.watch is None


def test_what_has_no_state_dictionary_is_not_measured_and_does_not_stop_training(exposed):
    session = Session("t", "test", None, port=0)
    session.begin()
    session.state_of("loss_module", lambda batch: batch)
    session.state_of("optimizer", None)
    session.end()
    assert exposed[-1].by("trainer_object_size_bytes", "object") == {}


def test_a_given_watch_is_used_and_left_running():
    with heapwatch.start("given", port=0) as watch:
        session = Session("t", "test", watch)
        session.begin()
        with_phase = session.phase("rollout")
        assert with_phase is None
        session.end()
        assert watch.port is not None


def test_a_taken_port_is_skipped_and_training_continues_without_one(caplog):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        session = Session("t", "test", None, port=port)
        session.begin()
        assert session.watch is not None
        assert session.watch.port != port
        session.end()

        refused = Session("t", "test", None, port=port, port_search=False)
        with caplog.at_level(logging.WARNING, "heapwatch"):
            refused.begin()
        refused.step()
        refused.phase("train")
        refused.count("step", 3)
        refused.end()
        assert "training continues" in caplog.text


def test_a_name_that_the_trainer_uses_is_said_once_and_does_not_reach_training(caplog):
    with heapwatch.start("given", port=0) as watch:
        watch.size("policy", dict)
        with caplog.at_level(logging.WARNING, "heapwatch"):
            for _ in range(3):
                session = Session("t", "test", watch)
                session.size("policy", dict)
    assert caplog.text.count("policy") == 1


def test_sessions_of_one_framework_share_a_watch_until_the_last_has_ended(exposed):
    first, second = (Session("t", "test", None, port=0) for _ in range(2))
    other = Session("another", "test-2", None, port=0)
    for session in (first, second, other):
        session.begin()
    assert first.watch is second.watch
    assert other.watch is not first.watch
    first.count("step", 3)
    second.count("step", 4)
    first.end()
    assert second.watch.port is not None
    second.end()
    assert exposed[-1].value("trainer_progress_total", unit="step") == 7
    other.end()


def test_a_name_asks_for_a_watch_of_its_own():
    plain = Session("t", "test", None, port=0)
    named = Session("t", "test", None, port=0, name="evaluation")
    beside = Session("t", "test", None, port=0, name="evaluation")
    for session in (plain, named, beside):
        session.begin()
    try:
        assert plain.watch.name == "t"
        assert named.watch.name == "evaluation"
        assert named.watch is beside.watch
    finally:
        for session in (plain, named, beside):
            session.end()


def test_of_buffers_with_one_name_the_latest_is_measured():
    first, second = Agent(), Agent()
    second.replay_memory.extend([4, 5])
    with heapwatch.start("given", port=0) as watch:
        for agent in (first, second):
            Session("t", "test", watch).buffer("replay_memory", accessor(agent, "replay_memory"))
        assert items_of(watch) == {"replay_memory": 5}


def items_of(watch):
    watch.exporter.safe_point.sample_now(*(task.sampler for task in watch.exporter.safe_point.tasks))
    return Readings(watch.exporter.snapshots.take(30).families).by("trainer_buffer_items", "buffer")
