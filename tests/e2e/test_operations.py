"""What `up`, `down`, the supervisor and the pages promise, on real processes."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import httpx
import psutil
import pytest
import yaml

from heapwatch_stack.errors import StackError
from heapwatch_stack.native import NativeStack
from heapwatch_stack.settings import TRAINER
from heapwatch_stack.supervision import WATCHDOG
from tests.dashboards.asking import run
from tests.dashboards.documents import Target, targets
from tests.support.running_stack import Stack
from tests.support.waiting import wait_for

pytestmark = pytest.mark.slow

SERVICES = ("prometheus", "alertmanager", "receiver", "dashboards", TRAINER)
PATIENCE_SECONDS = 300


def healthy(stack: Stack) -> bool:
    """As the status command finds it, without a process for each time that a test asks."""
    try:
        return all(row.healthy for row in NativeStack(stack.settings, print).status())
    except (OSError, StackError):
        return False


def test_everything_is_healthy_and_scraped(stack: Stack) -> None:
    done = stack.run("status")
    assert done.returncode == 0, done.stdout
    for service in SERVICES:
        assert re.search(rf"^{service}\s+http://127\.0\.0\.1:\d+\s+healthy\s+up", done.stdout, re.MULTILINE)


def test_the_token_is_secret_and_nothing_acts_without_it(stack: Stack) -> None:
    assert stack.settings.token_file.stat().st_mode & 0o777 == 0o600
    assert stack.settings.token_file.parent.stat().st_mode & 0o777 == 0o700
    answer = httpx.post(f"http://{stack.trainer}/force_cleanup", json={})
    assert answer.status_code == 401


def test_services_listen_on_loopback_only(stack: Stack) -> None:
    listening = {
        connection.laddr.ip
        for process in stack.processes()
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_restart_changes_one_process(stack: Stack) -> None:
    before = stack.pids()
    done = stack.run("restart", "--service", "receiver")
    assert done.returncode == 0, done.stderr
    after = stack.pids()
    assert {name for name in before if before[name] != after[name]} == {"receiver"}


def test_logs_of_one_service(stack: Stack) -> None:
    shown = stack.run("logs", "--service", "prometheus", "--lines", "400").stdout
    assert "Server is ready to receive web requests" in shown
    done = stack.run("logs", "--service", "nonesuch")
    assert done.returncode == 1
    assert "there is no log of 'nonesuch'" in done.stderr


# What a healthy trainer without GPU rightly has no data for: a query that names it may be empty.
MAY_BE_EMPTY = {
    r"@ end\(\)": "a limit is near, or far away",
    r"offset 10m": "growth is told after ten minutes",
    r"trainer_growing_path": "nothing grows, or it is too early to say",
    r"machine_group|machine_memory_(available|limit)": "no exporter of a machine here",
    r"trainer_gpu_|resource=\"gpu_memory\"": "no GPU here",
    r"job, trainer, run, world_size": "not a rank of a distributed run",
    r"heapwatch_receiver_(actions|alerts|alert_to_effect)": "the receiver had nothing to do",
    r"^\(min by \(job, instance\) \(trainer_memory_time_to_limit": "nothing grows towards its limit",
    r"^(?!.*or vector\(0\)).*ALERTS": "nothing fires",
    r"(role|component)=\"worker\"": "no worker processes",
    r"growth_per_cycle": "needs half an hour of cycles",
    r"trainer_cleanup_": "nothing was cleaned up",
    r"job:trainer:lost": "no trainer was lost",
    r"max_over_time\(timestamp": "nothing was cleaned up",
    r"trainer_buffer_capacity_items.*deriv": "a buffer that is full, or not yet measured long enough",
    r"increase\(": "needs two events in the range",
    r"avg_over_time\(\(+trainer_phase_memory_delta": "no phase gains memory",
    r"deriv\(\(+trainer_progress_total": "needs two cycles",
}


def may_be_empty(target: Target) -> bool:
    return any(re.search(pattern, target.target["expr"]) for pattern in MAY_BE_EMPTY)


@pytest.mark.timeout(600)
def test_every_query_of_the_pages_has_data_that_a_healthy_trainer_can_have(stack: Stack) -> None:
    url = stack.settings.url("prometheus")
    waiting = [target for target in targets() if not may_be_empty(target)]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while waiting and time.monotonic() < deadline:
        waiting = [target for target in waiting if not run(url, target, hours=0.25)]
        time.sleep(1)
    assert [str(target) for target in waiting] == []


def test_up_applies_what_changed_and_touches_nothing_else(stack: Stack, tmp_path: Path) -> None:
    before, token = stack.pids(), stack.settings.token_file.read_text()
    file = tmp_path / "notifications.yml"
    file.write_text("webhook_configs: [{url: 'http://127.0.0.1:9/hook'}]\n")
    stack.environment["HEAPWATCH_NOTIFICATIONS_FILE"] = str(file)
    stack.settings.token_file.write_text("another\n")
    try:
        done = stack.run("up")
    finally:
        del stack.environment["HEAPWATCH_NOTIFICATIONS_FILE"]
        stack.settings.token_file.write_text(token)
    assert done.returncode == 0, done.stderr
    assert "alertmanager reads its configuration" in done.stdout
    status = stack.settings.url("alertmanager") + "/api/v2/status"
    loaded = yaml.safe_load(httpx.get(status).json()["config"]["original"])
    (people,) = [one for one in loaded["receivers"] if one["name"] == "people"]
    assert len(people["webhook_configs"]) == 1
    restarted = {name for name, pid in stack.pids().items() if pid != before[name]}
    assert restarted == {"receiver", "dashboards", TRAINER}


def test_services_that_are_killed_come_back(stack: Stack) -> None:
    before = stack.pids()
    for pid in before.values():
        os.kill(pid, signal.SIGKILL)
    for name, pid in before.items():
        wait_for(lambda name=name, pid=pid: stack.pids()[name] not in (0, pid), f"another {name}", 60)
    wait_for(lambda: healthy(stack), "a healthy stack", 120)
    assert WATCHDOG in before


def test_a_killed_supervisor_leaves_nothing_and_up_starts_the_stack_again(stack: Stack) -> None:
    os.kill(stack.supervisor.pid(), signal.SIGKILL)
    wait_for(lambda: not stack.processes(), "the end of its services")
    status = stack.run("status")
    assert status.returncode == 1
    assert status.stdout.count("stopped") == len(SERVICES)
    done = stack.run("up")
    assert done.returncode == 0, done.stderr


def test_an_interrupted_up_leaves_nothing(tmp_path: Path) -> None:
    stack = Stack(tmp_path, HEAPWATCH_CHECKOUT="")
    process = stack.start("up")
    assert process.stdout is not None
    try:
        wait_for(lambda: "is healthy" in process.stdout.readline(), "a first healthy service")
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        assert process.returncode != 0
        assert "interrupted" in error
        assert stack.processes() == []
    finally:
        process.kill()
        stack.run("down")


def test_a_service_that_does_not_stay_up_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    stack = Stack(tmp_path, HEAPWATCH_CHECKOUT="", HEAPWATCH_RECEIVER_ACTIONS_PER_HOUR="many")
    done = stack.run("up")
    assert done.returncode == 1
    assert "receiver does not stay up" in done.stderr
    assert stack.processes() == []
