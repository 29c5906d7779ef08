"""The built wheel in an environment of its own, outside the clone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from heapwatch_stack.demo import Loop
from heapwatch_stack.settings import Settings
from tests.support.repository import REPOSITORY
from tests.support.running_stack import MINUTES, NOT_DOWNLOADED, finished, port_variables

# a path to this clone would be taken for an installation
OUTSIDE = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
NOT_BUILT_FROM = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__")


def run(*command: object) -> None:
    done = subprocess.run(command, env=OUTSIDE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def build(folder: Path) -> Path:
    """The wheel, built where no earlier build has left files."""
    shutil.copytree(REPOSITORY, folder / "clone", symlinks=True, ignore=NOT_BUILT_FROM)
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation")
    run(*pip, "-w", folder / "dist", folder / "clone")
    (wheel,) = (folder / "dist").glob("heapwatch-*.whl")
    return wheel


class Installed:
    """The wheel beside the packages of this environment, and a user who has nothing else."""

    def __init__(self, folder: Path) -> None:
        wheel = build(folder)
        run(sys.executable, "-m", "venv", "--without-pip", folder / "venv")
        self.bin = folder / "venv" / "bin"
        run(sys.executable, "-m", "pip", "--python", self.bin / "python", "install", "-q", "--no-deps", wheel)
        (packages,) = (folder / "venv").glob("lib/python3.*/site-packages")
        (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
        self.home = folder / "home"
        self.home.mkdir()
        programs = Path(shutil.which("prometheus") or "").parent
        ports = port_variables()
        own = {"HOME": str(self.home), "PATH": f"{programs}:/usr/bin:/bin"}
        self.environment = ports | own | NOT_DOWNLOADED
        self.state = self.home / ".local" / "state" / "heapwatch" / "stack"
        self.settings = Settings.from_environment(ports | {"HEAPWATCH_STATE": str(self.state)})

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
