"""What `up`, `down` and the supervisor promise, on real processes."""

from __future__ import annotations

import os
import re
import signal

import httpx
import psutil
import pytest

from heapwatch_stack.errors import StackError
from heapwatch_stack.native import NativeStack
from heapwatch_stack.settings import TRAINER
from heapwatch_stack.supervision import WATCHDOG
from tests.e2e.running import Stack, wait_for

pytestmark = pytest.mark.slow

SERVICES = ("prometheus", "alertmanager", "receiver", "dashboards", TRAINER)


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


def test_a_second_up_changes_nothing(stack: Stack) -> None:
    before = stack.pids()
    done = stack.run("up", timeout=30)
    assert done.returncode == 0, done.stderr
    assert stack.pids() == before
    assert "restarted" not in done.stdout


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


@pytest.mark.parametrize("starting", [False, True], ids=["while all runs", "while its watchdog starts"])
def test_a_killed_supervisor_is_healed(stack: Stack, starting: bool) -> None:
    before = stack.supervisor.pid()
    watchdog = stack.pids()[WATCHDOG]
    if starting:
        os.kill(watchdog, signal.SIGKILL)
        wait_for("another watchdog", lambda: stack.pids()[WATCHDOG] not in (0, watchdog))
    os.kill(before, signal.SIGKILL)
    wait_for(
        "another supervisor", lambda: stack.supervisor.running() and stack.supervisor.pid() != before, 60
    )
    wait_for("a healthy stack", lambda: healthy(stack), 90)


@pytest.mark.parametrize(
    "names", [SERVICES, ("receiver",), (WATCHDOG,)], ids=["all services at once", "one", "watchdog"]
)
def test_what_is_killed_is_healed(stack: Stack, names: tuple[str, ...]) -> None:
    before = stack.pids()
    for name in names:
        os.kill(before[name], signal.SIGKILL)
    for name in names:
        wait_for(f"another {name}", lambda name=name: stack.pids()[name] not in (0, before[name]), 60)
    wait_for("a healthy stack", lambda: healthy(stack), 120)
    after = stack.pids()
    assert {name for name in before if before[name] != after[name]} == set(names)


def test_restart_changes_one_process(stack: Stack) -> None:
    before = stack.pids()
    done = stack.run("restart", "--service", "receiver")
    assert done.returncode == 0, done.stderr
    after = stack.pids()
    assert {name for name in before if before[name] != after[name]} == {"receiver"}


def test_changed_environment_restarts_what_reads_it_and_reloads_nothing_else(stack: Stack) -> None:
    before = stack.pids()
    file = stack.settings.etc / "alertmanager.yml"
    stack.environment["HEAPWATCH_WEBHOOK_URL"] = "http://127.0.0.1:9/hook"
    try:
        done = stack.run("up")
        assert "alertmanager reads its changed configuration" in done.stdout, done.stdout + done.stderr
        assert "http://127.0.0.1:9/hook" in file.read_text()
        loaded = httpx.get(stack.settings.url(stack.settings.ports.alertmanager) + "/api/v2/status").json()
        assert "127.0.0.1:9" in loaded["config"]["original"] or "<secret>" in loaded["config"]["original"]
    finally:
        del stack.environment["HEAPWATCH_WEBHOOK_URL"]
    assert stack.run("up").returncode == 0
    assert stack.pids() == before


def test_logs_of_one_service(stack: Stack) -> None:
    assert (
        "Server is ready to receive web requests"
        in stack.run("logs", "--service", "prometheus", "--lines", "400").stdout
    )
    done = stack.run("logs", "--service", "nonesuch")
    assert done.returncode == 1
    assert "there is no log of 'nonesuch'" in done.stderr


def test_an_interrupted_up_leaves_nothing_and_the_next_one_works(tmp_path) -> None:
    stack = Stack(tmp_path)
    process = stack.start("up")
    assert process.stdout is not None
    try:
        wait_for("a first healthy service", lambda: "is healthy" in process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        assert process.returncode != 0
        assert "interrupted" in error
        assert stack.processes() == []
        done = stack.run("up")
        assert done.returncode == 0, done.stderr
    finally:
        process.kill()
        down = stack.run("down")
    assert down.returncode == 0, down.stderr
    assert stack.processes() == []


def test_a_service_that_does_not_stay_up_is_said_and_nothing_is_left(tmp_path) -> None:
    stack = Stack(tmp_path, HEAPWATCH_RECEIVER_ACTIONS_PER_HOUR="many")
    done = stack.run("up")
    assert done.returncode == 1
    assert "receiver does not stay up" in done.stderr
    assert stack.processes() == []
