"""Unpacks Debian packages into a folder of the project, without root. Standard library only."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from heapwatch.runtime.own_files import make_private

Progress = Callable[[str], None]


_RUN_SECONDS = 1800


class PackageError(Exception):
    """The packages could not be fetched; the message is one line."""


def unpack(packages: Sequence[str], destination: Path, progress: Progress) -> None:
    """Download `packages` with apt and unpack them so that `destination` holds their `usr/`, `etc/` ….

    The destination appears complete or not at all. Package lists are kept beside it, because only root may
    refresh those of the system. Raises PackageError.
    """
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise PackageError(f"{tool} is not on this system")
    make_private(destination.parent)
    for leftover in destination.parent.glob(f"{destination.name}.partial-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=f"{destination.name}.partial-", dir=destination.parent))
    try:
        apt = _PrivateApt(work)
        progress("refreshing the package lists")
        apt.run("update")
        progress(
            f"downloading {', '.join(packages[:2])}"
            + (f" and {len(packages) - 2} more" if packages[2:] else "")
        )
        apt.run("download", *packages)
        root = work / "root"
        for archive in sorted(work.glob("*.deb")):
            progress(f"unpacking {archive.name.split('_')[0]} {archive.name.split('_')[1]}")
            _run(["dpkg-deb", "-x", str(archive), str(root)], work)
        shutil.rmtree(destination, ignore_errors=True)
        root.rename(destination)
    finally:
        shutil.rmtree(work, ignore_errors=True)


class _PrivateApt:
    """apt-get with its own lists and caches in a folder, and the system's sources and keys."""

    def __init__(self, folder: Path) -> None:
        for needed in ("lists/partial", "cache/archives/partial"):
            (folder / needed).mkdir(parents=True)
        self._folder = folder
        self._options = [
            f"-oDir::State::lists={folder}/lists",
            f"-oDir::Cache={folder}/cache",
            "-oDebug::NoLocking=true",
            "-oAPT::Sandbox::User=",
            "-oAcquire::Retries=2",
            "-oAcquire::http::Timeout=20",
            "-oAcquire::https::Timeout=20",
            "-oAPT::Update::Error-Mode=any",
        ]

    def run(self, *arguments: str) -> None:
        _run(["apt-get", "-q", *self._options, *arguments], self._folder)


def _run(command: list[str], folder: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            text=True,
            capture_output=True,
            check=False,
            timeout=_RUN_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise PackageError(f"{command[0]} has not ended within {_RUN_SECONDS} s") from None
    if done.returncode != 0:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        reasons = [line for line in lines if line.startswith(("E:", "Err", "dpkg-deb: error"))] or lines
        raise PackageError(f"{command[0]} failed: {reasons[0].strip() if reasons else done.returncode}")
