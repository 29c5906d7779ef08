"""Downloads a release into the cache: resumes an earlier download, verifies it, unpacks it completely."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from heapwatch.runtime.own_files import make_private, open_own
from heapwatch_stack.releases import Release, architecture
from heapwatch_stack.turns import take_turn

Say = Callable[[str], None]

CONNECT_SECONDS = 5.0
# A download with fewer than this number of bytes in this time has stalled.
STALL_SECONDS = 15.0
STALL_BYTES = 128 * 1024
ATTEMPTS = 4
REPORT_SECONDS = 5.0


class DownloadError(Exception):
    """The release cannot be downloaded; one line with the reason."""


class NoAnswer(DownloadError):
    """The host does not answer, so other downloads from it need not be tried."""


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
    with _alone(cache / f"{release.name}.lock"):
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
        watch = _Pace(have, total, lambda text: say(f"{release.name}: {text}"))
        written = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if resumed else os.O_TRUNC)
        with os.fdopen(open_own(archive, written), "ab" if resumed else "wb") as file:
            for chunk in answer.iter_raw():
                file.write(chunk)
                watch.count(len(chunk))


class _Pace:
    """Reports the progress of a download, and ends one that stalls."""

    def __init__(self, have: int, total: int, say: Say) -> None:
        self._have = have
        self._total = total
        self._say = say
        self._reported = self._looked = time.monotonic()
        self._since_look = 0

    def count(self, size: int) -> None:
        """Count received bytes; raises httpx.ReadTimeout if the download stalls."""
        self._have += size
        self._since_look += size
        now = time.monotonic()
        if now - self._reported >= REPORT_SECONDS:
            self._reported = now
            of = f" of {self._total / 1e6:,.0f}" if self._total else ""
            self._say(f"{self._have / 1e6:,.0f}{of} MB")
        if now - self._looked >= STALL_SECONDS:
            if self._since_look < STALL_BYTES:
                raise httpx.ReadTimeout(f"{self._since_look} bytes in {now - self._looked:.0f} s")
            self._looked, self._since_look = now, 0


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


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with os.fdopen(open_own(lock, os.O_RDWR | os.O_CREAT), "r+b") as stream:
        take_turn(stream, lock)
        yield
