"""Safe reads and atomic writes of small state files.

Rejects pipes, devices, links, oversized files and files of other users.
"""

from __future__ import annotations

import json
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from heapwatch.text.terminal import plain

MOST_BYTES = 64 * 1024
_WITHOUT_WAITING = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_IRREGULAR = "is no regular file: a regular file is allowed"


class UnusableFile(OSError):
    """A file that may not be used; the message names the file, the problem and what is allowed."""

    def __init__(self, path: str | Path, problem: str) -> None:
        super().__init__(f"{plain(path)} {problem}")


def open_own(
    path: str | Path, flags: int = os.O_RDONLY, *, any_owner: bool = False, private: bool = False
) -> int:
    """Open a regular file of this user without waiting and without following a link; returns the descriptor.

    Args:
        path: the file; a new one gets mode 0600.
        flags: as for `os.open`.
        any_owner: the user chose this path, such as a mounted secret: allow links and any owner.
        private: reject a file on which other users have permissions.

    Raises:
        FileNotFoundError: the file does not exist.
        UnusableFile: the file is not allowed or cannot be opened.

    """
    try:
        descriptor = os.open(path, flags | _WITHOUT_WAITING | (0 if any_owner else os.O_NOFOLLOW), 0o600)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnusableFile(path, f"cannot be opened: {error.strerror}") from None
    except ValueError as error:
        raise UnusableFile(path, f"cannot be a file: {error}") from None
    if problem := _problem(os.fstat(descriptor), any_owner=any_owner, private=private):
        os.close(descriptor)
        raise UnusableFile(path, problem)
    return descriptor


def read_bytes(
    path: str | Path, *, most: int = MOST_BYTES, any_owner: bool = False, private: bool = False
) -> bytes:
    """The content of a file of up to `most` bytes. Arguments and errors: see `open_own`."""
    with os.fdopen(open_own(path, any_owner=any_owner, private=private), "rb") as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise UnusableFile(path, f"is too large: up to {most} bytes are allowed")
    return content


def read_text(
    path: str | Path, *, most: int = MOST_BYTES, any_owner: bool = False, private: bool = False
) -> str:
    """The content as text. Arguments and errors: see `open_own`; UnusableFile also when it is not UTF-8."""
    try:
        return read_bytes(path, most=most, any_owner=any_owner, private=private).decode("utf-8")
    except UnicodeDecodeError:
        raise UnusableFile(path, "is not text: UTF-8 is allowed") from None


def read_json(
    path: str | Path, *, most: int = MOST_BYTES, any_owner: bool = False, private: bool = False
) -> Any:
    """The JSON document in a file. Arguments and errors: see `open_own`; UnusableFile also for no JSON."""
    try:
        return json.loads(read_text(path, most=most, any_owner=any_owner, private=private))
    except (ValueError, RecursionError):
        raise UnusableFile(path, "is not valid JSON") from None


def replace(path: str | Path, text: str, mode: int = 0o600) -> None:
    """Write a file atomically: a reader sees the old content or the new one.

    Raises:
        OSError: the folder is not writable, or `path` is a folder.

    """
    descriptor, partial = tempfile.mkstemp(prefix=".heapwatch-", suffix=".tmp", dir=Path(path).parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            os.fchmod(stream.fileno(), mode)
        os.replace(partial, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(partial)
        raise


def check_replaceable(path: Path) -> None:
    """Raise UnusableFile if `path` exists and is not a regular file, such as a device."""
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):
            raise UnusableFile(path, _IRREGULAR)


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents with mode 0700, regardless of the umask.

    Raises:
        OSError: it cannot be created, or is no folder.

    """
    if folder.is_dir():
        return
    make_private(folder.parent)
    folder.mkdir(0o700, exist_ok=True)
    folder.chmod(0o700)


def _problem(status: os.stat_result, *, any_owner: bool, private: bool) -> str:
    if not stat.S_ISREG(status.st_mode):
        return _IRREGULAR
    if not any_owner and status.st_uid != os.geteuid():
        return f"belongs to another user (uid {status.st_uid}): one of this user is allowed"
    if private and status.st_mode & 0o077:
        return f"may be read or written by others (mode {status.st_mode & 0o777:04o}): chmod 600 it"
    return ""
