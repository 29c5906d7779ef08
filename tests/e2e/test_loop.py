"""The stack of the built wheel, once around its loop. What mostly waits runs at the same time."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psutil
import pytest

from heapwatch import lost
from heapwatch.stacks import ANNOUNCED
from tests.support.installed import Installed
from tests.support.running_stack import MINUTES, finished, of_stack
from tests.support.waiting import wait_for

pytestmark = pytest.mark.slow

TRAINER = """
import select, sys, heapwatch
watch, replay = heapwatch.start(sys.argv[1], port=0), []
watch.buffer("replay", lambda: replay)
print(watch.port, flush=True)
while not select.select([sys.stdin], [], [], 0.02)[0]:
    replay.append(0); watch.step()
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The stack of the wheel, running."""
    one = Installed(tmp_path_factory.mktemp("installed"))
    up = one.heapwatch("up", timeout=10 * MINUTES)
    try:
        assert up.returncode == 0, up.stdout + up.stderr
        yield one
    finally:
        down = one.heapwatch("down")
    assert down.returncode == 0, down.stderr
    assert of_stack(one.state) == []
    assert [p for p in psutil.process_iter() if str(one.bin) in " ".join(_command(p))] == []
    assert not (one.state / ANNOUNCED).exists()


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.fixture(scope="module")
def demonstration(installed: Installed) -> Iterator[subprocess.Popen[str]]:
    """The demonstration; other tests run meanwhile."""
    with installed.start("demo") as running:
        yield running
        running.kill()


@contextmanager
def trainer(installed: Installed, name: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A trainer of five lines and its instance; it ends with its input."""
    with subprocess.Popen(
        [installed.bin / "python", "-c", TRAINER, name], cwd=installed.home, env=installed.environment,
        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            yield process, f"127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


@pytest.mark.timeout(15 * MINUTES)
def test_the_stack_of_the_wheel_is_healthy_with_dashboards(installed: Installed) -> None:
    status = installed.heapwatch("status", "--json")
    assert status.returncode == 0, status.stdout + status.stderr
    rows = json.loads(status.stdout)
    assert {row["service"] for row in rows} == {"prometheus", "alertmanager", "receiver", "dashboards"}
    assert all(row["healthy"] for row in rows)
    settings = installed.settings
    dashboards = settings.url("dashboards")
    page = httpx.get(f"{dashboards}/d/heapwatch-fleet", follow_redirects=True, timeout=30)
    assert page.status_code == 200
    rules = httpx.get(settings.url("prometheus") + "/api/v1/rules").json()
    assert {"leak_alerts", "thresholds"} <= {group["name"] for group in rules["data"]["groups"]}


@pytest.mark.timeout(15 * MINUTES)
@pytest.mark.usefixtures("demonstration")
def test_a_killed_trainer_is_alerted_and_one_that_ends_is_not(installed: Installed) -> None:
    loop, settings = installed.loop(), installed.settings

    def alerts(instance: str) -> list[dict[str, str]]:
        url = settings.url("alertmanager") + "/api/v2/alerts"
        answer = httpx.get(url, params={"filter": "alertname=TrainerDown"}, timeout=30).json()
        return [one["annotations"] for one in answer if one["labels"]["instance"] == instance]

    with trainer(installed, "killed") as (killed, at), trainer(installed, "ended") as (ended, there):
        for instance in (at, there):
            known = f'job:trainer_resource:total{{resource="memory", instance="{instance}"}}'
            wait_for(lambda known=known: loop.query(known), "its memory", 3 * MINUTES)
        assert loop.query(f'trainer_buffer_items{{buffer="replay", instance="{at}"}} > 0')
        names = {
            one["trainer"] for one in json.loads(installed.heapwatch("top", "--json").stdout)["trainers"]
        }
        assert {"killed", "ended"} <= names
        killed.send_signal(signal.SIGKILL)
        ended.communicate("end\n", timeout=60)
    # Two minutes, and what a loaded machine takes.
    (said,) = wait_for(lambda: alerts(at), "the alert", 5 * MINUTES)
    assert said["summary"] == f"killed ({at}): {lost.UNKNOWN}"
    assert "B of memory" in said["description"]
    assert "verdict: " in said["description"]
    wait_for(lambda: loop.query(f'job:trainer_known:memory_bytes{{instance="{at}"}}'), "its row", 2 * MINUTES)
    assert alerts(there) == []
    assert {one.trainer for one in lost.read(settings.targets / lost.FOLDER)} == {"killed"}


@pytest.mark.timeout(20 * MINUTES)
def test_a_leak_is_alerted_cleaned_up_and_answered_for(
    installed: Installed, demonstration: subprocess.Popen[str]
) -> None:
    done = finished(demonstration, 18 * MINUTES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the loop closed" in done.stdout
    receiver = installed.settings.url("receiver")
    rows = httpx.get(f"{receiver}/actions", params={"limit": "100"}).json()["rows"]
    (row,) = [row for row in rows if row["decision"] == "act"]
    assert row["labels"]["severity"] == "critical"
    assert row["action"]["removed"]["bodies"] > 500
    assert row["action"]["freed_bytes"] > 50e6
    assert row["action"]["result"] == "helped"
