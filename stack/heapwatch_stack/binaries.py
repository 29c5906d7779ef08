"""Finds Prometheus, Alertmanager and Grafana: on PATH, else official releases, else Debian's packages."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from heapwatch.runtime.own_files import make_private
from heapwatch_stack import state_folder
from heapwatch_stack.configuration import link
from heapwatch_stack.debian import unpack, write_wrapper
from heapwatch_stack.errors import FetchError, Say, StackError
from heapwatch_stack.releases import ALERTMANAGER, GRAFANA, PROMETHEUS, Release, bring
from heapwatch_stack.settings import Settings

# The rules use keep_firing_for, which needs 2.42; 0.25 is the oldest Alertmanager that is tested.
MINIMUM = {"prometheus": (2, 42), "promtool": (2, 42), "alertmanager": (0, 25), "amtool": (0, 25)}
RELEASES = (PROMETHEUS, ALERTMANAGER)
ALSO_CALLED = {"alertmanager": "prometheus-alertmanager"}
PACKAGES_FOLDER = "packages"  # in the state folder, of Debian's packages
GRAFANA_HOME = Path("/usr/share/grafana")
PACKAGES = (
    "prometheus",
    "prometheus-alertmanager",
    # what Prometheus's web pages load
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
    """A program, the version that it reports, and where it was found."""

    path: Path
    version: str
    source: str


@dataclass(frozen=True)
class Binaries:
    """The four programs; `web_assets` is set if Prometheus needs the path of its web pages."""

    prometheus: Binary
    promtool: Binary
    alertmanager: Binary
    amtool: Binary
    web_assets: Path | None


@dataclass(frozen=True)
class Grafana:
    """Grafana's command and the folder that holds its pages."""

    command: tuple[str, ...]
    home: Path
    source: str


def find(settings: Settings, say: Say) -> Binaries:
    """The four programs, downloaded if PATH lacks one; StackError if that fails."""
    programs = {name: _on_path(name) for name in MINIMUM}
    for release in RELEASES:
        if not all(programs[name] for name in release.programs):
            place = _release(release, settings, say)
            if place is not None:
                source = f"official release {release.version}"
                for name, path in release.programs.items():
                    programs[name] = Binary(place / path, release.version, source)
    if missing := [name for name, binary in programs.items() if binary is None]:
        programs |= _debian(missing, settings.state, say)
    whole = {name: binary for name, binary in programs.items() if binary is not None}
    packages = settings.state / PACKAGES_FOLDER
    own_pages = whole["prometheus"].path.parent == packages / "bin"
    web = packages / "usr" / "share" / "prometheus" / "web"
    return Binaries(**whole, web_assets=web if own_pages else None)


def link_tools(settings: Settings, binaries: Binaries) -> Path:
    """A folder with the four programs, for PATH."""
    folder = settings.state / "bin"
    state_folder.make(settings.state)
    make_private(folder)
    for name in MINIMUM:
        path = getattr(binaries, name).path
        if path.parent != folder:
            link(folder / name, path)
    return folder


def find_grafana(settings: Settings, say: Say) -> Grafana | None:
    """Grafana from PATH or its official release; None if there is neither."""
    if path := shutil.which("grafana"):
        for home in (Path(path).resolve().parents[1], GRAFANA_HOME):
            if (home / "conf" / "defaults.ini").is_file():
                return Grafana((path, "server"), home, f"{path} on PATH")
    place = _release(GRAFANA, settings, say)
    if place is None:
        return None
    program = place / GRAFANA.programs["grafana"]
    return Grafana((str(program), "server"), place, f"official release {GRAFANA.version}")


def _release(release: Release, settings: Settings, say: Say) -> Path | None:
    """The unpacked release; None, and a line with the reason, if it cannot be downloaded."""
    try:
        return bring(release, settings.cache, say)
    except (FetchError, OSError) as error:
        say(f"{release.name}: {error}")
    return None


def _debian(missing: list[str], state: Path, say: Say) -> Mapping[str, Binary]:
    packages = state / PACKAGES_FOLDER
    folder = packages / "bin"
    state_folder.make(state)
    if not all((folder / name).exists() for name in MINIMUM):
        _unpack_packages(", ".join(missing), packages, say)
    programs = {name: _version_of(folder / name, "Debian's package") for name in missing}
    usable = {name: binary for name, binary in programs.items() if binary and _new_enough(name, binary)}
    if unusable := [name for name in missing if name not in usable]:
        raise StackError(
            f"{' and '.join(unusable)} of this system's packages is too old or cannot be run from"
            f" {packages}; put Prometheus 2.42 or newer and Alertmanager 0.25 or newer on PATH"
        )
    return usable


def _unpack_packages(missing: str, packages: Path, say: Say) -> None:
    """Unpack Debian's packages, and give their programs the upstream names in one folder."""
    say(f"{missing}: unpacking Debian's packages into {packages}")
    try:
        unpack(PACKAGES, packages, say)
    except FetchError as error:
        raise StackError(
            f"not on PATH: {missing}; and they could not be fetched ({error});"
            " check the network and run this again,"
            " or install Prometheus 2.42 or newer and Alertmanager 0.25 or newer"
        ) from error
    folder = packages / "bin"
    make_private(folder)
    for name in MINIMUM:
        program = packages / "usr" / "bin" / ALSO_CALLED.get(name, name)
        if name == "alertmanager":
            write_wrapper(program, packages / "usr" / "share", folder / name)
        else:
            link(folder / name, program)
    for name, debian_name in ALSO_CALLED.items():
        link(folder / debian_name, folder / name)


def _on_path(name: str) -> Binary | None:
    for called in filter(None, (name, ALSO_CALLED.get(name))):
        path = shutil.which(called)
        if path:
            binary = _version_of(Path(path), f"{path} on PATH")
            if binary and _new_enough(name, binary):
                return binary
    return None


def _version_of(path: Path, source: str) -> Binary | None:
    try:
        completed = subprocess.run(
            [path, "--version"], text=True, capture_output=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"version v?(\d+\.\d+\.\d+)", completed.stdout + completed.stderr)
    return Binary(path, match[1], source) if match else None


def _new_enough(name: str, binary: Binary) -> bool:
    return tuple(map(int, binary.version.split(".")[:2])) >= MINIMUM[name]
