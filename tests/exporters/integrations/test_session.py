import logging
import socket
from collections import deque

import heapwatch
from heapwatch.integrations.session import accessor, buffers_of, new_session


class Agent:
    def __init__(self):
        self.replay_memory = deque([1, 2, 3], maxlen=10)
        self.network = object()
        self.rollout_length = 5


def test_buffers_are_found_by_name_and_by_what_they_hold():
    assert buffers_of(Agent()) == ["replay_memory"]


def test_an_accessor_reads_anew_and_lets_its_owner_die():
    agent = Agent()
    read = accessor(agent, "replay_memory")
    agent.replay_memory = [1]
    assert read() == [1]
    del agent
    assert read() is None


def test_a_session_counts_from_where_the_run_started(exposed):
    session = new_session("t", "test", None, port=0)
    session.begin()
    session.start_at("step", 1000)
    session.count("step", 1010)
    session.count("step", 1025)
    session.end()
    assert exposed[-1].value("trainer_progress_total", unit="step") == 25
    assert session.watch is None


def test_a_given_watch_is_used_and_left_running():
    with heapwatch.start("given", port=0) as watch:
        session = new_session("t", "test", watch)
        session.begin()
        with_phase = session.phase("rollout")
        assert with_phase is None
        session.end()
        assert watch.port is not None


def test_a_taken_port_is_passed_over_and_training_goes_on_without_one(caplog):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        session = new_session("t", "test", None, port=port)
        session.begin()
        assert session.watch is not None
        assert session.watch.port != port
        session.end()

        stubborn = new_session("t", "test", None, port=port, port_search=False)
        with caplog.at_level(logging.WARNING, "heapwatch"):
            stubborn.begin()
        stubborn.step()
        stubborn.phase("train")
        stubborn.count("step", 3)
        stubborn.end()
        assert "training goes on" in caplog.text


def test_a_name_used_twice_is_said_once_and_does_not_reach_training(caplog):
    session = new_session("t", "test", None, port=0)
    session.begin()
    with caplog.at_level(logging.WARNING, "heapwatch"):
        for _ in range(3):
            session.size("policy", dict)
    session.end()
    assert caplog.text.count("policy") == 1
