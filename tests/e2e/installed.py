"""The built wheel in an empty environment, outside the clone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from heapwatch_stack.demo import Loop
from heapwatch_stack.settings import Settings
from tests.e2e.running import MINUTES, finished, port_variables
from tests.support.repository import REPOSITORY

# what pip needs of this shell; a path to this clone would be taken for an installation
PIP = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
NOT_BUILT_FROM = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")


class Environment:
    """An empty virtual environment, filled by the pip of this one."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        self.python = folder / "bin" / "python"

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return _run(self.python, *arguments)

    def pip(self, *arguments: object) -> str:
        return pip("--python", self.python, *arguments)


def pip(*arguments: object) -> str:
    done = _run(sys.executable, "-m", "pip", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=PIP, capture_output=True, text=True, check=False)


class Installed:
    """`heapwatch[stack]` from the wheel, and a user who has nothing else."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        ports = port_variables()
        self.environment = ports | {
            "HOME": str(self.home),
            "PATH": "/usr/bin:/bin",
            # nothing is downloaded twice on a machine that tests often
            "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")),
            **{name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")},
        }
        self.state = self.home / ".local" / "state" / "heapwatch" / "stack"
        self.settings = Settings.from_environment(ports | {"HEAPWATCH_STATE": str(self.state)})
        self.bin = folder / "venv" / "bin"
        self.pip = Environment(folder / "venv").pip
        lock = (REPOSITORY / "requirements" / "run.txt").read_text()
        (folder / "constraints.txt").write_text(
            re.sub(r" \\$", "", re.sub(r"^ +--hash.*\n", "", lock, flags=re.MULTILINE), flags=re.MULTILINE)
        )
        self.pip("install", "-q", "--no-compile", "-c", folder / "constraints.txt", f"{wheel}[stack]")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.bin / "heapwatch", *arguments],
            cwd=self.home, env=self.environment, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def heapwatch(self, *arguments: str, timeout: float = 4 * MINUTES) -> subprocess.CompletedProcess[str]:
        return finished(self.start(*arguments), timeout)

    def loop(self, instance: str = "") -> Loop:
        return Loop(self.settings, instance)


def build(folder: Path) -> Path:
    """The wheel, built where no earlier build has left files."""
    shutil.copytree(REPOSITORY, folder / "clone", symlinks=True, ignore=NOT_BUILT_FROM)
    pip("wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder / "dist", folder / "clone")
    (wheel,) = (folder / "dist").glob("heapwatch-*.whl")
    return wheel
