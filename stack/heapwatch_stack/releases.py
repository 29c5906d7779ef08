"""The official releases that replace programs missing on PATH: versions, checksums, download into the cache.

docker-compose.yml uses the same versions. Each checksum must be found in at least two independent public
places.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from heapwatch.runtime.own_files import make_private, open_own
from heapwatch.text.numbers import size
from heapwatch_stack.errors import FetchError, Say

CONNECT_SECONDS = 5.0
STALL_SECONDS = 15.0
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True)
class Release:
    """One archive for each architecture.

    Attributes:
        name: name of the project.
        version: version without a leading v.
        address: address of the archive, with the placeholders `{version}` and `{arch}`.
        sha256: checksum of the archive, by architecture.
        programs: path of each program below the archive's top folder, by name.

    """

    name: str
    version: str
    address: str
    sha256: Mapping[str, str]
    programs: Mapping[str, str]

    @property
    def url(self) -> str:
        """The address of this machine's archive."""
        return self.address.format(version=self.version, arch=architecture())

    @property
    def folder(self) -> str:
        """The name of the unpacked archive in the cache."""
        return f"{self.name}-{self.version}.linux-{architecture()}"


def architecture() -> str:
    """The machine's architecture in the names of the releases."""
    return ARCHITECTURES.get(platform.machine(), platform.machine())


PROMETHEUS = Release(
    name="prometheus",
    version="3.13.2",
    address="https://github.com/prometheus/prometheus/releases/download/v{version}/prometheus-{version}.linux-{arch}.tar.gz",
    sha256={
        "amd64": "0e8c4d46101bd025ea8265e377d2caabc57f488fc1be1c367f37db69ea41be6f",
        "arm64": "7cecb17a6f41d59814e1a0581a1f81f79051ad5973d1ecf39e23a9f747d6572a",
    },
    programs={"prometheus": "prometheus", "promtool": "promtool"},
)
ALERTMANAGER = Release(
    name="alertmanager",
    version="0.34.0",
    address="https://github.com/prometheus/alertmanager/releases/download/v{version}/alertmanager-{version}.linux-{arch}.tar.gz",
    sha256={
        "amd64": "19c75a11d8c03dc4ade7abdbddfb3a8f28c9e7b000d0849cda0cd71dffd74a03",
        "arm64": "a96ef16598ddc58e84d28167b3352b30e3205698d76c56ef467e4504d7664da4",
    },
    programs={"alertmanager": "alertmanager", "amtool": "amtool"},
)
GRAFANA = Release(
    name="grafana",
    version="13.1.3",
    address="https://dl.grafana.com/grafana/release/{version}/grafana_{version}_31135815010_linux_{arch}.tar.gz",
    sha256={
        "amd64": "e0fd22aa63901ebc961ee64195da60eef8624a831683ca10b26c7b068082e92b",
        "arm64": "83eef49ccc6529da5ef3ffd2bc76dadfa66cca9a9684278bf858346cf2271b5d",
    },
    programs={"grafana": "bin/grafana"},
)


def bring(release: Release, cache: Path, say: Say) -> Path:
    """The folder of the unpacked release, downloaded if the cache lacks it.

    Raises:
        FetchError: the download failed, and nothing of it is left.
        OSError: the cache cannot be written.

    """
    place = cache / release.folder
    if is_whole(place, release):
        return place
    wanted = release.sha256.get(architecture())
    if wanted is None:
        raise FetchError(f"{release.name} {release.version} is not pinned for {architecture()}")
    make_private(cache)
    with tempfile.TemporaryDirectory(prefix=f"{release.folder}.", dir=cache) as folder:
        work = Path(folder)
        actual = _download(release, work / "archive.tar.gz", say)
        if actual != wanted:
            raise FetchError(
                f"{release.url} has the SHA-256 {actual[:12]}… and not the pinned {wanted[:12]}…:"
                " it was thrown away"
            )
        _unpack(work, place, release)
    return place


def is_whole(place: Path, release: Release) -> bool:
    """Whether the cache holds the release: its folder is renamed into place when complete."""
    return all((place / program).is_file() for program in release.programs.values())


def _download(release: Release, archive: Path, say: Say) -> str:
    """Write the archive; returns its SHA-256."""
    digest = hashlib.sha256()
    timeout = httpx.Timeout(STALL_SECONDS, connect=CONNECT_SECONDS)
    try:
        with (
            httpx.stream("GET", release.url, timeout=timeout, follow_redirects=True) as answer,
            os.fdopen(open_own(archive, os.O_WRONLY | os.O_CREAT), "wb") as file,
        ):
            answer.raise_for_status()
            length = size(int(answer.headers.get("Content-Length") or 0))
            say(f"downloading {release.name} {release.version}, {length}, from {release.url}")
            for chunk in answer.iter_raw():
                file.write(chunk)
                digest.update(chunk)
    except httpx.HTTPStatusError as error:
        raise FetchError(f"{release.url} answers {error.response.status_code}") from error
    except httpx.HTTPError as error:
        raise FetchError(f"{release.url} does not answer ({error or type(error).__name__})") from error
    return digest.hexdigest()


def _unpack(work: Path, place: Path, release: Release) -> None:
    try:
        with tarfile.open(work / "archive.tar.gz") as file:
            # older Pythons have no filter; the archive has the pinned checksum
            if hasattr(tarfile, "data_filter"):
                file.extraction_filter = staticmethod(tarfile.data_filter)
            file.extractall(work / "unpacked")
    except (tarfile.TarError, ValueError) as error:
        raise FetchError(f"{release.url} cannot be unpacked: {error}") from error
    (top,) = (work / "unpacked").iterdir()
    if not is_whole(top, release):
        raise FetchError(f"{release.url} lacks {' or '.join(release.programs.values())}")
    shutil.rmtree(place, ignore_errors=True)
    top.rename(place)
