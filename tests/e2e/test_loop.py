"""The whole loop on real servers, of this clone and of the built wheel at the same time: both mostly wait."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from heapwatch_stack import processes
from tests.e2e.installed import Environment, Installed, build
from tests.e2e.running import MINUTES, Stack, finished, wait_for

pytestmark = pytest.mark.slow

TRAINER = """
import time, heapwatch
watch, replay = heapwatch.start("five-lines", port=0), []
watch.buffer("replay", lambda: replay)
while not time.sleep(0.02):
    replay.append(0); watch.step()
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The stack of the wheel, running."""
    one = Installed(tmp_path_factory.mktemp("installed"), wheel)
    up = one.heapwatch("up", timeout=10 * MINUTES)
    try:
        assert up.returncode == 0, up.stdout + up.stderr
        yield one
    finally:
        down = one.heapwatch("down")
    assert down.returncode == 0, down.stderr
    assert processes.of_stack(one.state) == []
    assert [p for p in psutil.process_iter() if str(one.bin) in " ".join(_command(p))] == []
    assert not list((one.home / ".local/state/heapwatch/stacks").glob("*"))


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.fixture(scope="module")
def demonstration(installed: Installed) -> Iterator[subprocess.Popen[str]]:
    """The demonstration of the wheel; other tests run meanwhile."""
    with installed.start("demo") as running:
        yield running
        running.kill()


@pytest.mark.timeout(15 * MINUTES)
def test_the_stack_of_the_wheel_is_healthy_with_dashboards(installed: Installed) -> None:
    status = installed.heapwatch("status", "--json")
    assert status.returncode == 0, status.stdout + status.stderr
    rows = json.loads(status.stdout)
    assert {row["service"] for row in rows} == {"prometheus", "alertmanager", "receiver", "dashboards"}
    assert all(row["healthy"] for row in rows)
    page = httpx.get(f"{installed.dashboards}/d/heapwatch-fleet", follow_redirects=True, timeout=30)
    assert page.status_code == 200
    groups = httpx.get(f"{installed.prometheus}/api/v1/rules").json()["data"]["groups"]
    assert {"verdict", "thresholds"} <= {group["name"] for group in groups}


@pytest.mark.timeout(5 * MINUTES)
def test_a_trainer_of_five_lines_is_watched(installed: Installed) -> None:
    command = [installed.bin / "python", "-c", TRAINER]
    with subprocess.Popen(command, cwd=installed.home, env=installed.environment) as trainer:
        try:
            wait_for("its series", lambda: installed.query('trainer_info{trainer="five-lines"}'), 2 * MINUTES)
            assert installed.query('trainer_buffer_items{buffer="replay"} > 0')
            (row,) = json.loads(installed.heapwatch("top", "--json").stdout)
            assert row["trainer"] == "five-lines"
        finally:
            trainer.terminate()


@pytest.mark.timeout(5 * MINUTES)
@pytest.mark.usefixtures("demonstration")
def test_the_light_install_has_two_dependencies_and_names_the_missing_extra(
    wheel: Path, tmp_path: Path
) -> None:
    light = Environment(tmp_path / "venv")
    light.pip("install", "-q", "--no-compile", wheel)
    names = {package["name"].replace("_", "-") for package in json.loads(light.pip("list", "--format=json"))}
    assert names == {"heapwatch", "prometheus-client", "psutil"}
    up = light.run("-m", "heapwatch", "up")
    assert (up.returncode, up.stderr) == (
        1,
        "error: this command needs yaml: pip install 'heapwatch[stack]'\n",
    )


@pytest.mark.timeout(22 * MINUTES)
@pytest.mark.usefixtures("demonstration")
def test_a_leak_goes_once_around_the_loop(stack: Stack) -> None:
    loop = stack.loop()
    healthy = loop.levels()
    assert 180 <= healthy.bodies <= 195
    assert loop.alerts() == []

    own = stack.start("demo")
    try:
        wait_for("bodies on /metrics", lambda: exposed(stack, "trainer_bodies") > 400, 5 * MINUTES)
        wait_for("food on /metrics", lambda: exposed(stack, "trainer_entities", type="food_sources") > 100)
        wait_for("bodies in Prometheus", lambda: (seen := loop.recorded()) and seen.bodies > 400)
        for state in ("pending", "firing"):
            wait_for(
                f"a {state} alert on the bodies",
                lambda state=state: [
                    alert
                    for alert in loop.alerts()
                    if alert["alertstate"] == state and alert["resource"] == "bodies"
                ],
                5 * MINUTES,
            )
        leaking = loop.levels()
        wait_for(
            "the alert in Alertmanager", lambda: [a for a in loop.notified() if a["resource"] == "bodies"]
        )
        rows = wait_for("the receiver's answered cleanup", lambda: answered(stack), 3 * MINUTES)
        assert rows[0]["decision"] == "act"
        assert rows[0]["labels"]["severity"] == "critical"
        assert rows[0]["action"]["removed"]["bodies"] > 500
        action = rows[0]["action"]["action"]
        assert exposed(stack, "trainer_cleanups_total", action=action) >= 1
        assert stack.loop().status()["last_cleanup"]["action"] in (action, "emergency")

        out, error = own.communicate(timeout=14 * MINUTES)
        assert own.returncode == 0, out + error
        assert "the loop closed" in out
    finally:
        own.kill()

    after = loop.levels()
    assert after.bodies < leaking.bodies / 2  # the leak went on until the cleanup was seen
    assert exposed(stack, "trainer_cleanup_removed_total", resource="food_sources") > leaking.food / 2
    assert after.memory < leaking.memory - 50e6
    assert loop.freed() > 50e6
    assert loop.query(f'trainer_cleanup_removed_total{{instance="{stack.trainer}", resource="bodies"}} > 500')
    assert answered(stack)[0]["action"]["result"] == "helped"


@pytest.mark.timeout(20 * MINUTES)
def test_the_demonstration_of_the_wheel_closes_the_loop(demonstration: subprocess.Popen[str]) -> None:
    done = finished(demonstration, 18 * MINUTES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the loop closed" in done.stdout


def exposed(stack: Stack, name: str, **labels: str) -> float:
    """Sum of a series on the trainer's own /metrics."""
    text = httpx.get(f"http://{stack.trainer}/metrics", timeout=10).text
    samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
    chosen = [s.value for s in samples if s.name == name and labels.items() <= s.labels.items()]
    assert chosen, f"{name} {labels} is not exposed"
    return sum(chosen)


def answered(stack: Stack) -> list[dict]:
    rows = [row for row in stack.loop().actions() if row["action"]]
    return [row for row in rows if row["action"]["answered_at"]]
