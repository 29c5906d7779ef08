from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from heapwatch_stack.debian import unpack, write_wrapper
from heapwatch_stack.errors import FetchError


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A real Debian package that holds usr/share/sample/file."""
    root = tmp_path / "sample"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN" / "control").write_text(
        "Package: sample\nVersion: 1\nArchitecture: all\nMaintainer: A <a@example.com>\nDescription: sample\n"
    )
    (root / "usr" / "share" / "sample").mkdir(parents=True)
    (root / "usr" / "share" / "sample" / "file").write_text("here\n")
    file = tmp_path / "sample_1_all.deb"
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
    apt_that(tmp_path, monkeypatch, f'for last; do :; done; [ "$last" != sample ] || cp {archive} .')
    place = tmp_path / "state" / "packages"
    unpack(["sample"], place, lambda text: None)
    assert (place / "usr/share/sample/file").read_text() == "here\n"
    assert [path.name for path in place.parent.iterdir()] == ["packages"]


def test_without_network_there_is_one_line_and_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt_that(
        tmp_path, monkeypatch, "echo \"E: Failed to fetch: Temporary failure resolving 'deb'\" >&2; exit 100"
    )
    place = tmp_path / "state" / "packages"
    with pytest.raises(FetchError, match="Temporary failure resolving") as raised:
        unpack(["sample"], place, lambda text: None)
    assert "\n" not in str(raised.value)
    assert list(place.parent.iterdir()) == []


def test_a_program_of_a_package_sees_its_files_beside_those_of_the_system(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode != 0:
        pytest.skip("this Linux allows no user namespaces")
    share, program, wrapper = tmp_path / "a: b", tmp_path / "program", tmp_path / "wrapper"
    (share / "of-a-package").mkdir(parents=True)
    program.write_text('#!/bin/sh\nls /usr/share | grep -x -e of-a-package -e doc; pwd; echo "$@"\n')
    program.chmod(0o755)
    write_wrapper(program, share, wrapper)
    done = subprocess.run([wrapper, "one", "two  three"], cwd=tmp_path, text=True, capture_output=True)
    assert done.stdout.split("\n") == ["doc", "of-a-package", str(tmp_path), "one two  three", ""], (
        done.stderr
    )
    assert not Path("/usr/share/of-a-package").exists()
