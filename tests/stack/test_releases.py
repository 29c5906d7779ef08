"""Downloads from a server that is good, cuts off, hangs, answers wrongly or is not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heapwatch_stack import releases
from heapwatch_stack.releases import (
    ALERTMANAGER,
    GRAFANA,
    PROMETHEUS,
    DownloadError,
    NoAnswer,
    Release,
    bring,
)
from tests.stack.archives import archive, pinned, serving
from tests.support.ports import free_ports

CONTENT = archive(PROMETHEUS, {"prometheus": os.urandom(300_000), "promtool": b"tool"})
RELEASE = pinned(PROMETHEUS, CONTENT)
NAME = RELEASE.url().rpartition("/")[2]


@pytest.fixture
def said() -> list[str]:
    return []


def left(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir() if not path.name.endswith(".lock")}


def test_a_good_server_is_asked_once_for_ever(tmp_path: Path, said: list[str]) -> None:
    with serving({NAME: CONTENT}) as (address, asked):
        place = bring(RELEASE, tmp_path, address, said.append)
        assert bring(RELEASE, tmp_path, address, said.append) == place
    assert (place / "promtool").read_bytes() == b"tool"
    assert os.access(place / "prometheus", os.X_OK)
    assert asked == [(f"/{NAME}", None)]
    assert left(tmp_path) == {RELEASE.folder}
    assert said[0].startswith("downloading prometheus 3.")


def test_a_download_that_is_cut_off_is_resumed(tmp_path: Path, said: list[str]) -> None:
    with serving({NAME: CONTENT}, "cut", most=len(CONTENT) // 3 + 1) as (address, asked):
        bring(RELEASE, tmp_path, address, said.append)
    assert [wanted is not None for _, wanted in asked] == [False, True, True]


def test_an_interrupted_download_continues_the_next_time(tmp_path: Path, said: list[str]) -> None:
    (tmp_path / f"{RELEASE.folder}.tar.gz.partial").write_bytes(CONTENT[:100_000])
    with serving({NAME: CONTENT}) as (address, asked):
        bring(RELEASE, tmp_path, address, said.append)
    assert asked == [(f"/{NAME}", "bytes=100000-")]


def test_a_server_that_always_cuts_off_is_given_up_in_one_line(tmp_path: Path, said: list[str]) -> None:
    with (
        serving({NAME: CONTENT}, "unranged", most=1000) as (address, asked),
        pytest.raises(DownloadError, match="ends early or stalls") as raised,
    ):
        bring(RELEASE, tmp_path, address, said.append)
    assert "\n" not in str(raised.value)
    assert len(asked) == 2
    assert RELEASE.folder not in left(tmp_path)


def test_a_wrong_checksum_is_thrown_away(tmp_path: Path, said: list[str]) -> None:
    other = archive(PROMETHEUS, {"prometheus": b"evil", "promtool": b"evil"})
    with (
        serving({NAME: other}) as (address, _),
        pytest.raises(DownloadError, match=r"has the SHA-256 .* and not the pinned .*: it was thrown away"),
    ):
        bring(RELEASE, tmp_path, address, said.append)
    assert left(tmp_path) == set()


def test_a_hanging_server_is_given_up(
    tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "STALL_SECONDS", 0.3)
    with (
        serving({NAME: CONTENT}, "hanging", most=0) as (address, _),
        pytest.raises(DownloadError, match="ends early or stalls"),
    ):
        bring(RELEASE, tmp_path, address, said.append)


def test_a_trickle_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "STALL_SECONDS", 0.0)
    progress = releases._Progress(0, 1 << 20, print)
    with pytest.raises(releases.httpx.ReadTimeout, match="10 bytes in"):
        progress.count(10)
    progress.count(releases.STALL_BYTES)


def test_an_absent_server_and_a_missing_file_are_distinguished(tmp_path: Path, said: list[str]) -> None:
    (port,) = free_ports(1)
    with pytest.raises(NoAnswer, match=rf"127\.0\.0\.1:{port} does not answer"):
        bring(RELEASE, tmp_path, f"http://127.0.0.1:{port}", said.append)
    with serving({}) as (address, _), pytest.raises(DownloadError, match="answers 404") as raised:
        bring(RELEASE, tmp_path, address, said.append)
    assert not isinstance(raised.value, NoAnswer)


def test_an_archive_that_lacks_its_program_is_not_unpacked(tmp_path: Path, said: list[str]) -> None:
    content = archive(PROMETHEUS, {"prometheus": b"x"})
    with serving({NAME: content}) as (address, _), pytest.raises(DownloadError, match="lacks"):
        bring(pinned(PROMETHEUS, content), tmp_path, address, said.append)
    assert RELEASE.folder not in left(tmp_path)


@pytest.mark.parametrize("release", [PROMETHEUS, ALERTMANAGER, GRAFANA], ids=lambda release: release.name)
def test_both_architectures_are_pinned(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(release.sha256) == {"amd64", "arm64"}
    assert all(len(digest) == 64 and int(digest, 16) for digest in release.sha256.values())
    assert len(set(release.sha256.values())) == 2
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert release.url().startswith("https://")
    assert "arm64" in release.url()
