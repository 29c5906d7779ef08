"""The built wheel in an empty environment, outside the clone: stack, trainer of five lines, demonstration."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from heapwatch.stack import processes
from tests.e2e.running import PORTS, free_ports, wait_for
from tests.repository import REPOSITORY

MINUTES = 60
# what pip needs of this shell; a path to this clone would be taken for an installation
PIP = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
NOT_BUILT_FROM = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")
TRAINER = """
import time, heapwatch
watch, replay = heapwatch.start("five-lines", port=0), []
watch.buffer("replay", lambda: replay)
while not time.sleep(0.02):
    replay.append(0); watch.step()
"""


class Environment:
    """An empty virtual environment."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.python = folder / "bin" / "python"

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [self.python, *arguments]
        return subprocess.run(command, env=PIP, capture_output=True, text=True, check=False)

    def pip(self, *arguments: object) -> str:
        done = self.run("-m", "pip", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout


class Installed:
    """`heapwatch[stack]` from the wheel, and a user who has nothing else."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        ports = {f"HEAPWATCH_{name}_PORT": str(port) for name, port in zip(PORTS, free_ports(5), strict=True)}
        self.environment = ports | {
            "HOME": str(self.home),
            "PATH": "/usr/bin:/bin",
            # nothing is downloaded twice on a machine that tests often
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
            **{name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")},
        }
        self.state = self.home / ".local" / "state" / "heapwatch" / "stack"
        self.prometheus = f"http://127.0.0.1:{ports['HEAPWATCH_PROMETHEUS_PORT']}"
        self.dashboards = f"http://127.0.0.1:{ports['HEAPWATCH_DASHBOARDS_PORT']}"
        self.bin = folder / "venv" / "bin"
        wheel = build(folder)
        self.pip = Environment(folder / "venv").pip
        lock = (REPOSITORY / "requirements" / "run.txt").read_text()
        (folder / "constraints.txt").write_text(
            re.sub(r" \\$", "", re.sub(r"^ +--hash.*\n", "", lock, flags=re.MULTILINE), flags=re.MULTILINE)
        )
        self.pip("install", "-q", "-c", folder / "constraints.txt", f"{wheel}[stack]")

    def heapwatch(self, *arguments: str, timeout: float = 4 * MINUTES) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.bin / "heapwatch", *arguments],
            cwd=self.home, env=self.environment, text=True, capture_output=True, timeout=timeout, check=False,
        )  # fmt: skip

    def query(self, expression: str) -> list[dict]:
        answer = httpx.get(f"{self.prometheus}/api/v1/query", params={"query": expression}).json()
        return list(answer["data"]["result"])


def build(folder: Path) -> Path:
    """The wheel, built where no earlier build has left files."""
    shutil.copytree(REPOSITORY, folder / "clone", symlinks=True, ignore=NOT_BUILT_FROM)
    Environment(folder / "builder").pip("wheel", "-q", "--no-deps", "-w", folder / "dist", folder / "clone")
    (wheel,) = (folder / "dist").glob("heapwatch-*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    one = Installed(tmp_path_factory.mktemp("wheel"))
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
    assert "verdict" in {group["name"] for group in groups} or len(groups) > 5


@pytest.mark.timeout(5 * MINUTES)
def test_a_trainer_of_five_lines_is_watched(installed: Installed) -> None:
    command = [installed.bin / "python", "-c", TRAINER]
    with subprocess.Popen(command, cwd=installed.home, env=installed.environment) as trainer:
        try:
            wait_for("its series", lambda: installed.query('trainer_info{trainer="five-lines"}'), 2 * MINUTES)
            assert installed.query('trainer_buffer_items{buffer="replay"} > 0')
            (row,) = json.loads(installed.heapwatch("ps", "--json").stdout)
            assert row["trainer"] == "five-lines"
        finally:
            trainer.terminate()


@pytest.mark.timeout(12 * MINUTES)
def test_the_demonstration_closes_the_loop(installed: Installed) -> None:
    demo = installed.heapwatch("demo", timeout=10 * MINUTES)
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "the loop closed" in demo.stdout


def test_the_light_install_has_two_dependencies_and_names_the_missing_extra(tmp_path: Path) -> None:
    light = Environment(tmp_path / "venv")
    light.pip("install", "-q", build(tmp_path))
    names = {package["name"].replace("_", "-") for package in json.loads(light.pip("list", "--format=json"))}
    assert names - {"pip", "setuptools"} == {"heapwatch", "prometheus-client", "psutil"}
    up = light.run("-m", "heapwatch", "up")
    assert (up.returncode, up.stderr) == (
        1,
        "error: this command needs rich: pip install 'heapwatch[stack]'\n",
    )
