from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from heapwatch_stack.debian import PackageError, unpack


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A real Debian package that holds usr/share/thing/file."""
    root = tmp_path / "thing"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN" / "control").write_text(
        "Package: thing\nVersion: 1\nArchitecture: all\nMaintainer: A <a@example.com>\nDescription: thing\n"
    )
    (root / "usr" / "share" / "thing").mkdir(parents=True)
    (root / "usr" / "share" / "thing" / "file").write_text("here\n")
    file = tmp_path / "thing_1_all.deb"
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", root, file], check=True, capture_output=True)
    return file


def apt_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put an apt-get on PATH that does `script` instead of asking the network."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "apt-get").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_packages_are_unpacked_and_nothing_else_remains(
    tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt_that(tmp_path, monkeypatch, f'for last; do :; done; [ "$last" != thing ] || cp {archive} .')
    place = tmp_path / "state" / "packages"
    unpack(["thing"], place, lambda text: None)
    assert (place / "usr/share/thing/file").read_text() == "here\n"
    assert [path.name for path in place.parent.iterdir()] == ["packages"]


def test_without_network_there_is_one_line_and_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt_that(
        tmp_path, monkeypatch, "echo \"E: Failed to fetch: Temporary failure resolving 'deb'\" >&2; exit 100"
    )
    place = tmp_path / "state" / "packages"
    with pytest.raises(PackageError, match="Temporary failure resolving") as told:
        unpack(["thing"], place, lambda text: None)
    assert "\n" not in str(told.value)
    assert list(place.parent.iterdir()) == []


def test_what_an_interrupted_download_left_is_removed(
    tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt_that(tmp_path, monkeypatch, f'for last; do :; done; [ "$last" != thing ] || cp {archive} .')
    place = tmp_path / "state" / "packages"
    (place.parent / "packages.partial-old" / "lists").mkdir(parents=True)
    unpack(["thing"], place, lambda text: None)
    assert [path.name for path in place.parent.iterdir()] == ["packages"]


def test_a_system_without_apt_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("apt-get") is None
    with pytest.raises(PackageError, match="apt-get is not on this system"):
        unpack(["thing"], tmp_path / "packages", lambda text: None)
