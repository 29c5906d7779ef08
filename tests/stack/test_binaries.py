from __future__ import annotations

from pathlib import Path

import pytest

from heapwatch_stack import binaries
from heapwatch_stack.errors import FetchError, StackError
from heapwatch_stack.settings import Settings
from tests.support.archives import pinned_archives
from tests.support.ports import free_ports

PROGRAMS = ("prometheus", "promtool", "alertmanager", "amtool")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    own = {"HEAPWATCH_STATE": str(tmp_path / "state"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    return Settings.from_environment(own)


def program(folder: Path, name: str, version: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\necho '{name}, version {version} (branch: x)'\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "path"
    for name, version in (("prometheus", "2.53.1"), ("promtool", "2.53.1"), ("amtool", "0.27.0")):
        program(folder, name, version)
    program(folder, "prometheus-alertmanager", "0.27.0")
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> str:
    """The hosts of the releases do not answer."""
    (port,) = free_ports(1)
    address = f"http://127.0.0.1:{port}"
    pinned_archives(
        monkeypatch, {name.upper(): {} for name in ("prometheus", "alertmanager", "grafana")}, address
    )
    return address


@pytest.fixture
def debian(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Debian's packages, as if they were downloaded; where they were unpacked."""
    fetched: list[Path] = []

    def unpack(_packages: object, destination: Path, _progress: object) -> None:
        fetched.append(destination)
        for name in ("prometheus", "promtool", "amtool"):
            program(destination / "usr" / "bin", name, "2.42.0")

    def write_wrapper(_program: Path, _share: Path, wrapper: Path) -> None:
        program(wrapper.parent, wrapper.name, "2.42.0")

    monkeypatch.setattr(binaries, "unpack", unpack)
    monkeypatch.setattr(binaries, "write_wrapper", write_wrapper)
    return fetched


def test_what_is_on_path_is_taken_with_debians_names_too(path: Path, settings: Settings) -> None:
    found = binaries.find(settings, print)
    assert (found.prometheus.version, found.alertmanager.path.name) == ("2.53.1", "prometheus-alertmanager")
    assert found.web_assets is None


def test_one_too_old_is_not_taken_and_a_failed_download_is_one_line(
    path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(path, "prometheus", "2.41.0")

    def fail(*_: object) -> None:
        raise FetchError("apt-get said: no network")

    monkeypatch.setattr(binaries, "unpack", fail)
    monkeypatch.setattr(binaries, "bring", lambda *_: fail())
    with pytest.raises(
        StackError, match=r"not on PATH: prometheus; .*no network.*check the network"
    ) as raised:
        binaries.find(settings, print)
    assert "\n" not in str(raised.value)


def test_where_no_server_answers_debian_and_the_viewer_are_used(
    settings: Settings, unreachable: str, debian: list[Path]
) -> None:
    said: list[str] = []
    for _ in range(2):
        found = binaries.find(settings, said.append)
    assert binaries.find_grafana(settings, said.append) is None
    assert debian == [settings.state / "packages"], "what was fetched is fetched again"
    assert found.prometheus.source == "Debian's package"
    assert found.alertmanager.path == settings.state / "packages" / "bin" / "alertmanager"
    assert found.web_assets == settings.state / "packages" / "usr" / "share" / "prometheus" / "web"
    refused = [line for line in said if unreachable in line and "does not answer" in line]
    assert len(refused) == 5


def test_an_alertmanager_of_the_packages_that_cannot_be_run_is_said(
    settings: Settings, unreachable: str, debian: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "write_wrapper", lambda _program, _share, wrapper: wrapper.write_text("no"))
    with pytest.raises(
        StackError, match="alertmanager of this system's packages is too old or cannot be run"
    ):
        binaries.find(settings, print)


def test_the_tools_are_in_one_folder_for_path(path: Path, settings: Settings) -> None:
    folder = binaries.link_tools(settings, binaries.find(settings, print))
    assert {file.name for file in folder.iterdir()} == set(PROGRAMS)
