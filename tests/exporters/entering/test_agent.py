"""What is done inside an entered process, here in this one."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from heapwatch import lifecycle
from heapwatch.entering import agent


def explained(folder: Path) -> threading.Thread:
    """The thread that writes the explanation into the folder of a visit."""
    agent.answer_to({"action": "explain", "name": "here", "folder": str(folder), "sender": os.getpid()})
    return next(thread for thread in threading.enumerate() if thread.name.endswith("report"))


def test_a_visit_says_that_it_has_left_once_its_watch_has_ended(tmp_path: Path) -> None:
    visit = explained(tmp_path)
    assert lifecycle.running()
    (tmp_path / agent.LEAVE).touch()
    visit.join(20)
    assert not lifecycle.running()
    assert (tmp_path / agent.LEFT).exists()


def test_a_visit_that_could_not_end_its_watch_does_not_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit = explained(tmp_path)
    monkeypatch.setattr(agent, "_ENDING_SECONDS", 0.1)
    with agent._one_at_a_time:  # another command is at work
        (tmp_path / agent.LEAVE).touch()
        visit.join(20)
    assert not (tmp_path / agent.LEFT).exists()
    assert lifecycle.running()
    agent.answer_to({"action": "leave"})
    assert not lifecycle.running()


def test_a_forked_child_can_be_entered_whatever_its_parent_was_doing(tmp_path: Path) -> None:
    visit = explained(tmp_path)
    with agent._one_at_a_time:
        child = os.fork()
        if not child:
            code = 1
            try:
                answer = agent.answer_to({"action": "leave"})
                code = int(answer != {"error": "does not run Heapwatch"} or agent._log.disabled)
            finally:
                os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    (tmp_path / agent.LEAVE).touch()
    visit.join(20)
