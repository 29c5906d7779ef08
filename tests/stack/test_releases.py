"""Downloads from a server that is good, cuts off, hangs, answers wrongly or is not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heapwatch.text.numbers import size
from heapwatch_stack import releases
from heapwatch_stack.errors import FetchError
from heapwatch_stack.releases import ALERTMANAGER, GRAFANA, PROMETHEUS, Release, bring
from tests.support.archives import archive, pinned, serving
from tests.support.ports import free_ports

CONTENT = archive(PROMETHEUS, {"prometheus": os.urandom(300_000), "promtool": b"tool"})
NAME = PROMETHEUS.url.rpartition("/")[2]


def left(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir() if not path.name.endswith(".lock")}


def test_a_good_server_is_asked_once_for_ever(tmp_path: Path) -> None:
    said: list[str] = []
    with serving({NAME: CONTENT}) as (address, asked):
        release = pinned(PROMETHEUS, CONTENT, address)
        place = bring(release, tmp_path, said.append)
        assert bring(release, tmp_path, said.append) == place
    assert (place / "promtool").read_bytes() == b"tool"
    assert os.access(place / "prometheus", os.X_OK)
    assert asked == [f"/{NAME}"]
    assert left(tmp_path) == {release.folder}
    assert said == [f"downloading prometheus {release.version}, {size(len(CONTENT))}, from {release.url}"]


def test_a_download_that_hangs_is_one_line_and_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releases, "STALL_SECONDS", 0.3)
    with (
        serving({NAME: CONTENT}, most=1000) as (address, _),
        pytest.raises(FetchError, match="does not answer") as raised,
    ):
        bring(pinned(PROMETHEUS, CONTENT, address), tmp_path, print)
    assert "\n" not in str(raised.value)
    assert left(tmp_path) == set()
    with serving({NAME: CONTENT}) as (address, _):
        bring(pinned(PROMETHEUS, CONTENT, address), tmp_path, print)


def test_a_wrong_checksum_is_thrown_away(tmp_path: Path) -> None:
    other = archive(PROMETHEUS, {"prometheus": b"evil", "promtool": b"evil"})
    with (
        serving({NAME: other}) as (address, _),
        pytest.raises(FetchError, match=r"has the SHA-256 .* and not the pinned .*: it was thrown away"),
    ):
        bring(pinned(PROMETHEUS, CONTENT, address), tmp_path, print)
    assert left(tmp_path) == set()


def test_an_absent_server_and_a_missing_file_are_distinguished(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with pytest.raises(FetchError, match=rf"127\.0\.0\.1:{port}/.* does not answer"):
        bring(pinned(PROMETHEUS, CONTENT, f"http://127.0.0.1:{port}"), tmp_path, print)
    with serving({}) as (address, _), pytest.raises(FetchError, match="answers 404"):
        bring(pinned(PROMETHEUS, CONTENT, address), tmp_path, print)


def test_an_archive_that_lacks_its_program_is_not_unpacked(tmp_path: Path) -> None:
    content = archive(PROMETHEUS, {"prometheus": b"x"})
    with serving({NAME: content}) as (address, _), pytest.raises(FetchError, match="lacks"):
        bring(pinned(PROMETHEUS, content, address), tmp_path, print)
    assert left(tmp_path) == set()


@pytest.mark.parametrize("release", [PROMETHEUS, ALERTMANAGER, GRAFANA], ids=lambda release: release.name)
def test_both_architectures_are_pinned(release: Release, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(release.sha256) == {"amd64", "arm64"}
    assert all(len(digest) == 64 and int(digest, 16) for digest in release.sha256.values())
    assert len(set(release.sha256.values())) == 2
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert release.url.startswith("https://")
    assert "arm64" in release.url
