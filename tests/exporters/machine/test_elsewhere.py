from __future__ import annotations

import socket
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from heapwatch.explain.findings import Explanation, message
from heapwatch.machine import elsewhere
from heapwatch.machine.elsewhere import OtherMachines
from heapwatch.measure.process.ray_job import RayJob

HERE = socket.gethostname()


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The nodes that a double of Ray tells to the driver of a job."""
    told = [
        {"NodeManagerHostname": name, "Alive": alive}
        for name, alive in ((HERE, True), ("b", True), ("b", True), ("c", True), ("gone", False))
    ]
    ray = SimpleNamespace(is_initialized=lambda: True, nodes=lambda: told)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(elsewhere, "driven_job", lambda pid: RayJob("session", "01000000"))
    return told


def counted(machines: OtherMachines, clock: Any) -> int:
    machines.count()
    for thread in threading.enumerate():
        if thread.name == "heapwatch-nodes":
            thread.join(30)
    clock.now += 1
    return machines.count()


def test_other_live_machines_count_once_and_are_asked_for_seldom(nodes: list[Any], clock: Any) -> None:
    machines = OtherMachines(clock)
    assert counted(machines, clock) == 2
    nodes.append({"NodeManagerHostname": "d", "Alive": True})
    assert counted(machines, clock) == 2
    clock.now += 300
    assert counted(machines, clock) == 3


def test_a_process_that_drives_no_job_has_none(monkeypatch: pytest.MonkeyPatch, clock: Any) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert counted(OtherMachines(clock), clock) == 0


def test_nothing_leaks_is_said_of_this_machine_alone() -> None:
    assert message(Explanation("healthy", 60.0, 0.0, 0.0)) == "Nothing leaks."
    two = message(Explanation("healthy", 60.0, 0.0, 0.0, other_machines=2))
    assert two == (
        "Nothing leaks on this machine. 2 other machines of this Ray cluster were not looked at:"
        " see `heapwatch ray`."
    )
