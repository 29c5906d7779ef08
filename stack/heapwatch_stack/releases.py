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
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from heapwatch.runtime.own_files import make_private, open_own
from heapwatch_stack.errors import Say
from heapwatch_stack.state_folder import locked

CONNECT_SECONDS = 5.0
# A download with fewer than this number of bytes in this time has stalled.
STALL_SECONDS = 15.0
STALL_BYTES = 128 * 1024
ATTEMPTS = 4
REPORT_SECONDS = 5.0
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

    def url(self, mirror: str = "") -> str:
        """The address of this machine's archive; on a `mirror` it has the same file name."""
        official = self.address.format(version=self.version, arch=architecture())
        return f"{mirror.rstrip('/')}/{official.rpartition('/')[2]}" if mirror else official

    def host(self, mirror: str = "") -> str:
        """The host of that address."""
        return urlsplit(self.url(mirror)).netloc

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


class DownloadError(Exception):
    """The release cannot be downloaded; one line with the reason."""


class NoAnswer(DownloadError):
    """The host does not answer, so other downloads from it are not tried."""


def bring(release: Release, cache: Path, mirror: str, say: Say) -> Path:
    """The folder of the unpacked release, downloaded if the cache lacks it.

    Raises:
        DownloadError: the download failed; its part stays in the cache for the next attempt.
        OSError: the cache cannot be written.

    """
    place = cache / release.folder
    if is_whole(place, release):
        return place
    wanted = release.sha256.get(architecture())
    if wanted is None:
        raise DownloadError(f"{release.name} {release.version} is not pinned for {architecture()}")
    make_private(cache)
    with locked(cache / f"{release.name}.lock"):
        if is_whole(place, release):
            return place
        archive = cache / f"{release.folder}.tar.gz.partial"
        _download(release, archive, release.url(mirror), say)
        found = _sha256(archive)
        if found != wanted:
            archive.unlink()
            raise DownloadError(
                f"{release.url(mirror)} has the SHA-256 {found[:12]}… and not the pinned {wanted[:12]}…:"
                " it was thrown away"
            )
        _unpack(archive, place, release)
        archive.unlink()
    return place


def is_whole(place: Path, release: Release) -> bool:
    """Whether the cache holds the release: its folder is renamed into place when complete."""
    return all((place / program).is_file() for program in release.programs.values())


def _download(release: Release, archive: Path, url: str, say: Say) -> None:
    """Download the rest of `archive`, in several attempts."""
    problem = ""
    for _ in range(ATTEMPTS):
        before = archive.stat().st_size if archive.exists() else 0
        try:
            _fetch(release, archive, url, say)
            return
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise NoAnswer(f"{urlsplit(url).netloc} does not answer ({error or 'timeout'})") from error
        except httpx.HTTPStatusError as error:
            raise DownloadError(f"{url} answers {error.response.status_code}") from error
        except httpx.HTTPError as error:
            problem = str(error) or type(error).__name__
        if (archive.stat().st_size if archive.exists() else 0) <= before:
            break  # another attempt would not get further
    raise DownloadError(f"{url} ends early or stalls ({problem})")


def _fetch(release: Release, archive: Path, url: str, say: Say) -> None:
    """Request the missing part once."""
    have = archive.stat().st_size if archive.exists() else 0
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    timeout = httpx.Timeout(STALL_SECONDS, connect=CONNECT_SECONDS)
    with httpx.stream("GET", url, headers=headers, timeout=timeout, follow_redirects=True) as answer:
        if answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # it is complete already
        answer.raise_for_status()
        resumed = answer.status_code == httpx.codes.PARTIAL_CONTENT
        have = have if resumed else 0
        total = have + int(answer.headers.get("Content-Length") or 0)
        verb = "resuming" if resumed else "downloading"
        say(f"{verb} {release.name} {release.version} from {urlsplit(url).netloc}")
        watch = _Progress(have, total, lambda text: say(f"{release.name}: {text}"))
        written = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if resumed else os.O_TRUNC)
        with os.fdopen(open_own(archive, written), "ab" if resumed else "wb") as file:
            for chunk in answer.iter_raw():
                file.write(chunk)
                watch.count(len(chunk))


class _Progress:
    """Reports the progress of a download, and ends one that stalls."""

    def __init__(self, have: int, total: int, say: Say) -> None:
        self._have = have
        self._total = total
        self._say = say
        self._reported = self._checked = time.monotonic()
        self._since_check = 0

    def count(self, size: int) -> None:
        """Count received bytes; raises httpx.ReadTimeout if the download stalls."""
        self._have += size
        self._since_check += size
        now = time.monotonic()
        if now - self._reported >= REPORT_SECONDS:
            self._reported = now
            of = f" of {self._total / 1e6:,.0f}" if self._total else ""
            self._say(f"{self._have / 1e6:,.0f}{of} MB")
        if now - self._checked >= STALL_SECONDS:
            if self._since_check < STALL_BYTES:
                raise httpx.ReadTimeout(f"{self._since_check} bytes in {now - self._checked:.0f} s")
            self._checked, self._since_check = now, 0


def _unpack(archive: Path, place: Path, release: Release) -> None:
    work = Path(tempfile.mkdtemp(prefix=f"{release.folder}.", dir=place.parent))
    try:
        with tarfile.open(archive) as file:
            # older Pythons have no filter; the archive has the pinned checksum
            if hasattr(tarfile, "data_filter"):
                file.extraction_filter = staticmethod(tarfile.data_filter)
            file.extractall(work)
        (top,) = work.iterdir()
        if not is_whole(top, release):
            raise DownloadError(f"{archive.name} lacks {' or '.join(release.programs.values())}")
        shutil.rmtree(place, ignore_errors=True)
        top.rename(place)
    except (tarfile.TarError, ValueError) as error:
        raise DownloadError(f"{archive.name} cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with os.fdopen(open_own(file), "rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
