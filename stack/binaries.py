"""Finds Prometheus, Alertmanager and their tools: on PATH, else unpacked from Debian's packages."""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from heapwatch.stack.configuration import claim
from heapwatch.stack.debian import FetchError, Progress, unpack
from heapwatch.stack.errors import StackError
from heapwatch.stack.relocate import relocate

# The rules use keep_firing_for, which 2.42 brought; 0.25 is the oldest Alertmanager that is tested.
MINIMUM = {"prometheus": (2, 42), "promtool": (2, 42), "alertmanager": (0, 25), "amtool": (0, 25)}
ALSO_CALLED = {"alertmanager": "prometheus-alertmanager"}
PACKAGES = (
    "prometheus",
    "prometheus-alertmanager",
    # what Prometheus's own pages load
    "fonts-glyphicons-halflings",
    "libjs-bootstrap4",
    "libjs-d3",
    "libjs-eonasdan-bootstrap-datetimepicker",
    "libjs-jquery",
    "libjs-jquery-hotkeys",
    "libjs-moment",
    "libjs-moment-timezone",
    "libjs-mustache",
    "libjs-popper.js",
    "libjs-rickshaw",
)


@dataclass(frozen=True)
class Binary:
    """One program and the version it says it is."""

    path: Path
    version: str


@dataclass(frozen=True)
class Binaries:
    """The four programs; `web_assets` is set where Prometheus must be told where its pages are."""

    prometheus: Binary
    promtool: Binary
    alertmanager: Binary
    amtool: Binary
    web_assets: Path | None


def find(state: Path, progress: Progress) -> Binaries:
    """The four programs, fetched into `state` when PATH lacks one; StackError when they cannot be had."""
    found = {name: _on_path(name) for name in MINIMUM}
    if all(found.values()):
        return _binaries(found, None)
    folder = state / "bin"
    with _alone(state):
        if not all((folder / name).exists() for name in MINIMUM):
            missing = ", ".join(name for name, binary in found.items() if binary is None)
            _fetch(missing, state / "packages", folder, progress)
    found = {name: _version_of(folder / name) for name in MINIMUM}
    if lacking := [name for name, binary in found.items() if binary is None or not _new_enough(name, binary)]:
        raise StackError(
            f"this system's packages have no {' and '.join(lacking)} that is new enough;"
            " put Prometheus 2.42 or newer and Alertmanager 0.25 or newer on PATH"
        )
    return _binaries(found, state / "packages" / "usr" / "share" / "prometheus" / "web")


def _fetch(missing: str, packages: Path, folder: Path, progress: Progress) -> None:
    progress(f"{missing}: not on PATH, unpacking Debian's packages into {packages}")
    try:
        unpack(PACKAGES, packages, progress)
    except FetchError as error:
        raise StackError(
            f"not on PATH: {missing}; and they could not be fetched ({error});"
            " check the network and run this again,"
            " or install Prometheus 2.42 or newer and Alertmanager 0.25 or newer"
        ) from error
    _link(packages, folder)


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    """Two at once would unpack over each other: the second waits, and finds what the first has fetched."""
    claim(state)
    with (state / "packages.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _binaries(found: dict[str, Binary | None], web_assets: Path | None) -> Binaries:
    whole = {name: binary for name, binary in found.items() if binary is not None}
    return Binaries(**whole, web_assets=web_assets)


def _on_path(name: str) -> Binary | None:
    for called in filter(None, (name, ALSO_CALLED.get(name))):
        path = shutil.which(called)
        if path and (binary := _version_of(Path(path))) and _new_enough(name, binary):
            return binary
    return None


def _version_of(path: Path) -> Binary | None:
    try:
        done = subprocess.run([path, "--version"], text=True, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"version v?(\d+\.\d+\.\d+)", done.stdout + done.stderr)
    return Binary(path, match[1]) if match else None


def _new_enough(name: str, binary: Binary) -> bool:
    return tuple(map(int, binary.version.split(".")[:2])) >= MINIMUM[name]


def _link(packages: Path, folder: Path) -> None:
    """Give the unpacked programs their upstream names in one folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in MINIMUM:
        link, program = folder / name, packages / "usr" / "bin" / ALSO_CALLED.get(name, name)
        if name == "alertmanager":
            relocate(program, packages / "usr" / "share" / "prometheus", link)
        else:
            link.unlink(missing_ok=True)
            link.symlink_to(program)
    for name, debian_name in ALSO_CALLED.items():
        (folder / debian_name).unlink(missing_ok=True)
        (folder / debian_name).symlink_to(folder / name)
