from __future__ import annotations

from pathlib import Path

import pytest

from heapwatch.stack import binaries
from heapwatch.stack.debian import FetchError
from heapwatch.stack.errors import StackError
from heapwatch.stack.relocate import BUILT_IN, THROUGH_DESCRIPTOR


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


def test_what_is_on_path_is_taken_with_debians_names_too(path: Path, tmp_path: Path) -> None:
    found = binaries.find(tmp_path / "state", print)
    assert (found.prometheus.version, found.alertmanager.path.name) == ("2.53.1", "prometheus-alertmanager")
    assert found.web_assets is None


def test_one_too_old_is_not_taken_and_a_failed_download_is_one_line(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(path, "prometheus", "2.41.0")

    def fail(*_: object) -> None:
        raise FetchError("apt-get said: no network")

    monkeypatch.setattr(binaries, "unpack", fail)
    with pytest.raises(StackError, match=r"not on PATH: prometheus; .*no network.*check the network") as told:
        binaries.find(tmp_path / "state", print)
    assert "\n" not in str(told.value)


def test_what_was_fetched_is_not_fetched_again(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path / "promtool").unlink()
    fetched = []

    def unpack(_packages: object, destination: Path, _progress: object) -> None:
        fetched.append(destination)
        for name in ("prometheus", "promtool", "amtool", "prometheus-alertmanager"):
            program(destination / "usr" / "bin", name, "2.42.0")
        (destination / "usr/share/prometheus").mkdir(parents=True)

    monkeypatch.setattr(binaries, "unpack", unpack)
    monkeypatch.setenv("PATH", f"{path}:/usr/bin:/bin")
    monkeypatch.setattr(binaries, "_on_path", lambda name: None)
    for _ in range(2):
        found = binaries.find(tmp_path / "state", print)
    assert fetched == [tmp_path / "state" / "packages"]
    assert found.alertmanager.path == tmp_path / "state" / "bin" / "alertmanager"
    assert found.alertmanager.version == "2.42.0"


def test_the_relocated_path_has_the_length_of_the_one_it_replaces() -> None:
    assert len(THROUGH_DESCRIPTOR) == len(BUILT_IN)
