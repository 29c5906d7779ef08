"""Debian packages in a folder of the project, without root. Standard library only."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from heapwatch.runtime.own_files import make_private
from heapwatch_stack.errors import Say

_RUN_SECONDS = 1800
BUILT_IN = b"/usr/share/prometheus/alertmanager"
DESCRIPTOR = 9
THROUGH_DESCRIPTOR = (
    f"/proc/self/fd/{DESCRIPTOR}".encode().ljust(len(BUILT_IN) - len(b"alertmanager"), b"/") + b"alertmanager"
)


class PackageError(Exception):
    """The packages could not be fetched; the message is one line."""


def unpack(packages: Sequence[str], destination: Path, say: Say) -> None:
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
        apt = _private_apt(work)
        say("refreshing the package lists")
        _run([*apt, "update"], work)
        more = f" and {len(packages) - 2} more" if packages[2:] else ""
        say(f"downloading {', '.join(packages[:2])}{more}")
        _run([*apt, "download", *packages], work)
        root = work / "root"
        for archive in sorted(work.glob("*.deb")):
            say(f"unpacking {archive.name.split('_')[0]} {archive.name.split('_')[1]}")
            _run(["dpkg-deb", "-x", str(archive), str(root)], work)
        shutil.rmtree(destination, ignore_errors=True)
        root.rename(destination)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _private_apt(folder: Path) -> list[str]:
    """apt-get with its own lists and caches in a folder, and the system's sources and keys."""
    for needed in ("lists/partial", "cache/archives/partial"):
        (folder / needed).mkdir(parents=True)
    return [
        *("apt-get", "-q", f"-oDir::State::lists={folder}/lists", f"-oDir::Cache={folder}/cache"),
        *("-oDebug::NoLocking=true", "-oAPT::Sandbox::User=", "-oAPT::Update::Error-Mode=any"),
        *("-oAcquire::Retries=2", "-oAcquire::http::Timeout=20", "-oAcquire::https::Timeout=20"),
    ]


def _run(command: list[str], folder: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, text=True, capture_output=True, timeout=_RUN_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise PackageError(f"{command[0]} has not ended within {_RUN_SECONDS} s") from None
    if done.returncode != 0:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        reasons = [line for line in lines if line.startswith(("E:", "Err", "dpkg-deb: error"))] or lines
        raise PackageError(f"{command[0]} failed: {reasons[0].strip() if reasons else done.returncode}")


def relocate(program: Path, share: Path, wrapper: Path) -> None:
    """Write `wrapper`, which runs Debian's Alertmanager, `program`, with `share` for /usr/share/prometheus.

    Debian's build opens its templates below that folder. It has no option for another one, and only root can
    write there. So the path is replaced in a copy of the program by a path of the same length below
    /proc/self/fd, and a two-line wrapper opens the folder with that descriptor. This works in any folder and
    for any user.
    """
    relocated = program.with_name(program.name + ".relocated")
    _write(relocated, program.read_bytes().replace(BUILT_IN, THROUGH_DESCRIPTOR))
    script = (
        f'#!/bin/sh\nexec {DESCRIPTOR}<{shlex.quote(str(share))} && exec {shlex.quote(str(relocated))} "$@"\n'
    )
    _write(wrapper, script.encode())


def _write(file: Path, content: bytes) -> None:
    """Replace an executable atomically, even while the old one is running."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.chmod(0o755)
    fresh.replace(file)
