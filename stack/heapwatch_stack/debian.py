"""Debian packages in a folder of the project, without root. Standard library only."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from heapwatch.runtime.own_files import make_private, replace
from heapwatch_stack.errors import FetchError, Say

_RUN_SECONDS = 1800


def unpack(packages: Sequence[str], destination: Path, say: Say) -> None:
    """Download `packages` with apt and unpack them so that `destination` holds their `usr/`, `etc/` ….

    The destination appears complete or not at all. Package lists are kept beside it, because only root may
    refresh those of the system. Raises FetchError.
    """
    make_private(destination.parent)
    with tempfile.TemporaryDirectory(prefix=f"{destination.name}.", dir=destination.parent) as folder:
        work = Path(folder)
        apt = _private_apt(work)
        say("refreshing the package lists")
        _run([*apt, "update"], work)
        say(f"downloading {', '.join(packages[:2])} and {len(packages[2:])} more")
        _run([*apt, "download", *packages], work)
        for archive in sorted(work.glob("*.deb")):
            _run(["dpkg-deb", "-x", str(archive), str(work / "root")], work)
        shutil.rmtree(destination, ignore_errors=True)
        (work / "root").rename(destination)


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
        completed = subprocess.run(
            command, cwd=folder, env=environment, text=True, capture_output=True, timeout=_RUN_SECONDS
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise FetchError(str(error)) from None
    if completed.returncode != 0:
        lines = [line for line in (completed.stderr or completed.stdout).splitlines() if line.strip()]
        reasons = [line for line in lines if line.startswith(("E:", "Err", "dpkg-deb: error"))] or lines
        raise FetchError(f"{command[0]} failed: {reasons[0].strip() if reasons else completed.returncode}")


def write_wrapper(program: Path, share: Path, wrapper: Path) -> None:
    """Write `wrapper`, which runs `program` where it also sees the folder `share` in /usr/share.

    Debian's Alertmanager opens its templates below /usr/share, where only root can write, and has no option
    for another place. The wrapper lays `share` over /usr/share in a mount namespace of its own, which needs
    no root where Linux allows user namespaces. Elsewhere it fails, with the reason on stderr.
    """
    overlay = "mount -t overlay overlay -o lowerdir=.:/usr/share /usr/share"
    inside = f'(cd "$0" && {overlay}) && exec "$@"'
    command = shlex.join(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", inside, str(share), str(program)]
    )
    replace(wrapper, f'#!/bin/sh\nexec {command} "$@"\n', 0o755)
