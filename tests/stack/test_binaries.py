from __future__ import annotations

from pathlib import Path

import pytest

from heapwatch_stack import binaries, releases
from heapwatch_stack.debian import BUILT_IN, THROUGH_DESCRIPTOR, PackageError
from heapwatch_stack.errors import StackError
from heapwatch_stack.releases import PROMETHEUS
from heapwatch_stack.settings import Settings
from tests.stack.archives import archive, pinned_archives, serving
from tests.support.ports import free_ports


def settings(tmp_path: Path, downloads: str = "off") -> Settings:
    """A stack that downloads nothing unless told where from."""
    return Settings.from_environment(
        {
            "HEAPWATCH_STATE": str(tmp_path / "state"),
            "HEAPWATCH_CACHE": str(tmp_path / "cache"),
            "HEAPWATCH_DOWNLOADS": downloads,
        }
    )


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


def debian(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Debian's packages, as if they were downloaded; returns where they were unpacked."""
    fetched: list[Path] = []

    def unpack(_packages: object, destination: Path, _progress: object) -> None:
        fetched.append(destination)
        for name in ("prometheus", "promtool", "amtool", "prometheus-alertmanager"):
            program(destination / "usr" / "bin", name, "2.42.0")
        (destination / "usr/share/prometheus").mkdir(parents=True)

    monkeypatch.setattr(binaries, "unpack", unpack)
    return fetched


def test_what_is_on_path_is_taken_with_debians_names_too(path: Path, tmp_path: Path) -> None:
    found = binaries.find(settings(tmp_path), print)
    assert (found.prometheus.version, found.alertmanager.path.name) == ("2.53.1", "prometheus-alertmanager")
    assert found.web_assets is None


def test_one_too_old_is_not_taken_and_a_failed_download_is_one_line(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(path, "prometheus", "2.41.0")

    def fail(*_: object) -> None:
        raise PackageError("apt-get said: no network")

    monkeypatch.setattr(binaries, "unpack", fail)
    with pytest.raises(
        StackError, match=r"not on PATH: prometheus; .*no network.*check the network"
    ) as raised:
        binaries.find(settings(tmp_path), print)
    assert "\n" not in str(raised.value)


def test_what_was_fetched_is_not_fetched_again(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path / "promtool").unlink()
    fetched = debian(monkeypatch)
    monkeypatch.setenv("PATH", f"{path}:/usr/bin:/bin")
    monkeypatch.setattr(binaries, "_on_path", lambda name: None)
    for _ in range(2):
        found = binaries.find(settings(tmp_path), print)
    assert fetched == [tmp_path / "state" / "packages"]
    assert found.alertmanager.path == tmp_path / "state" / "packages" / "bin" / "alertmanager"
    assert found.alertmanager.version == "2.42.0"


def test_the_relocated_path_has_the_length_of_the_one_it_replaces() -> None:
    assert len(THROUGH_DESCRIPTOR) == len(BUILT_IN)


def script(version: str) -> bytes:
    return f"#!/bin/sh\necho 'version {version}'\n".encode()


@pytest.fixture
def mirrored(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Archives of the official layouts by file name, pinned as if they were the official ones."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    programs = {
        "PROMETHEUS": {"prometheus": script("3.13.2"), "promtool": script("3.13.2")},
        "ALERTMANAGER": {"alertmanager": script("0.34.0"), "amtool": script("0.34.0")},
        "GRAFANA": {"bin/grafana": script("13.1.3"), "conf/defaults.ini": b""},
    }
    return pinned_archives(monkeypatch, programs)


def test_what_path_lacks_comes_from_official_releases(tmp_path: Path, mirrored: dict[str, bytes]) -> None:
    with serving(mirrored) as (address, asked):
        chosen = settings(tmp_path, address)
        found, grafana = binaries.find(chosen, print), binaries.find_grafana(chosen, print)
    assert (found.prometheus.version, found.alertmanager.version) == ("3.13.2", "0.34.0")
    assert found.web_assets is None
    assert grafana is not None
    assert grafana.command == (str(grafana.home / "bin" / "grafana"), "server")
    assert len(asked) == 3
    cached = binaries.find(settings(tmp_path), print)
    assert cached.prometheus.path == found.prometheus.path


def test_an_absent_server_costs_one_attempt_and_debian_and_the_viewer_are_used(
    tmp_path: Path, mirrored: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = debian(monkeypatch)
    said: list[str] = []
    (port,) = free_ports(1)
    chosen = settings(tmp_path, f"http://127.0.0.1:{port}")
    found, grafana = binaries.find(chosen, said.append), binaries.find_grafana(chosen, said.append)
    assert found.prometheus.source == "Debian's package"
    assert grafana is None
    assert len(fetched) == 1
    assert len([line for line in said if f"127.0.0.1:{port} does not answer" in line]) == 2


def test_a_wrong_checksum_is_said_and_debian_is_used(
    tmp_path: Path, mirrored: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    debian(monkeypatch)
    said: list[str] = []
    name = PROMETHEUS.url().rpartition("/")[2]
    with serving(mirrored | {name: archive(PROMETHEUS, {"prometheus": b"evil"})}) as (address, _):
        found = binaries.find(settings(tmp_path, address), said.append)
    assert (found.prometheus.source, found.alertmanager.version) == ("Debian's package", "0.34.0")
    (line,) = [line for line in said if line.startswith("prometheus: ") and "and not the pinned" in line]
    assert "\n" not in line


@pytest.mark.parametrize("manner", ["unranged", "hanging"])
def test_a_download_that_ends_early_or_stalls_is_said_once_and_debian_is_used(
    tmp_path: Path, mirrored: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, manner: str
) -> None:
    monkeypatch.setattr(releases, "STALL_SECONDS", 0.3)
    debian(monkeypatch)
    said: list[str] = []
    with serving(mirrored, manner, most=0) as (address, _):
        found = binaries.find(settings(tmp_path, address), said.append)
    assert {found.prometheus.source, found.alertmanager.source} == {"Debian's package"}
    for name in ("prometheus", "alertmanager"):
        (line,) = [line for line in said if line.startswith(f"{name}: ") and "ends early or stalls" in line]
        assert "\n" not in line


def test_debians_alertmanager_without_its_templates_is_skipped(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    templates = bytes(tmp_path / "templates")
    monkeypatch.setattr(binaries, "BUILT_IN", templates)
    file = path / "prometheus-alertmanager"
    file.write_bytes(file.read_bytes() + b"# " + templates)
    assert binaries._on_path("alertmanager") is None
    assert binaries._on_path("amtool") is not None
