"""`heapwatch explain` without a name: which process is entered, and what is said of its group."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import Mock

import pytest

from heapwatch.cli import machine
from heapwatch.cli.machine import explain_machine
from heapwatch.entering.entered_process import CannotEnter
from heapwatch.explain.findings import Explanation, Finding
from heapwatch.machine.groups import Member
from heapwatch.machine.levels import GroupGrowth
from heapwatch.machine.survey import Survey

LEAK = Finding("container", "agent.history", "list", 9, 10**6, 60.0, 9e6, 1.0, is_leak=True)
LEAKS = Explanation("leak", 60.0, 9e6, 1.0, (LEAK,))
WARM = Explanation("warm-up", 60.0, 9e6, 1.0)


def group(name: str, *pids: int, per_minute: float = 9e6, is_python: bool = True) -> GroupGrowth:
    members = tuple(Member(pid, 0.0, name, is_python) for pid in pids)
    return GroupGrowth(name, members, 10**8, 0, per_minute, 0.0, members, per_minute)


@pytest.fixture
def visited(monkeypatch: pytest.MonkeyPatch) -> dict[int, Any]:
    """What a visit of a process finds, by its id; an error is raised."""
    answers: dict[int, Any] = {}

    def explain(visits: object, pid: int, seconds: float) -> Explanation:
        answer = answers.pop(pid)
        if isinstance(answer, Exception):
            raise answer
        found: Explanation = answer
        return found

    monkeypatch.setattr("heapwatch.cli.visits.Visits.explain", explain)
    return answers


def looked_at(monkeypatch: pytest.MonkeyPatch, *groups: GroupGrowth) -> None:
    monkeypatch.setattr(machine, "survey", Mock(return_value=Survey(1000.0, 25.0, groups)))


def test_one_of_the_group_that_grows_most_is_entered_for_all(
    visited: dict[int, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at(monkeypatch, group("Rollout of Ray job 01", 7, 8, 9), group("reward", 10, per_minute=8e6))
    visited[7] = LEAKS
    found = explain_machine(60.0)
    (finding,) = found.explanation.findings
    assert finding.type == "list in 3 of 3 Rollout of Ray job 01"
    assert found.about() == (
        "Not entered, though they grow: reward.",
        "Process 7, one of 3 that grow among 3 Rollout of Ray job 01:",
    )
    document = found.as_json()
    assert document["entered"] == {"pid": 7, "group": "Rollout of Ray job 01"}
    assert [one["growing"] for one in document["groups"]] == [3, 1]
    json.dumps(document)


def test_a_process_that_cannot_be_entered_and_a_warm_up_lead_to_the_next(
    visited: dict[int, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looked_at(monkeypatch, group("redis", 5, is_python=False), group("train", 7, 8), group("serve", 9))
    visited |= {7: CannotEnter("process 7 runs Python 3.8"), 8: WARM, 9: LEAKS}
    found = explain_machine(600.0)
    assert (found.pid, found.explanation.verdict) == (9, "leak")
    assert found.about() == ("Process 9 (serve):",)
    errors = capsys.readouterr().err
    assert "redis does not run Python" in errors
    assert "process 7 runs Python 3.8" in errors


def test_comfort_is_not_given_of_what_was_not_entered(
    visited: dict[int, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at(monkeypatch, group("train", 7, per_minute=0.0))
    found = explain_machine(60.0)
    assert (found.explanation.verdict, found.as_json()["entered"]) == ("too early", None)
    assert found.explanation.detail == "Nothing grows by an amount that matters in 1 process."
    looked_at(monkeypatch, group("train", 7))
    visited[7] = CannotEnter("no")
    assert "could be entered" in explain_machine(60.0).explanation.detail
