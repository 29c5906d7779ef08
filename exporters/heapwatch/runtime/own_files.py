"""Small files in folders of ours, opened so that none can hold a program, fill its memory or mislead it.

Anything may lie under the name of such a file: a pipe, a device, a link, a gigabyte, a file of another user.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from heapwatch.runtime.plain_text import plain

MOST_BYTES = 64 * 1024
# No file of ours has as many. The parser is recursive, and a program may have raised the limit of recursion
# beyond what its stack holds.
MOST_BRACKETS = 200
_WITHOUT_WAITING = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_ROOT = 0
_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class UnusableFile(OSError):
    """One line with the name of the file, what is wrong with it and what is allowed."""

    def __init__(self, path: str | Path, problem: str) -> None:
        super().__init__(f"{plain(path)} {problem}")


def open_own(
    path: str | Path,
    flags: int = os.O_RDONLY,
    *,
    named: bool = False,
    private: bool = False,
    foreign: bool = False,
) -> int:
    """Open a regular file of this user without waiting and without following a link; returns the descriptor.

    Args:
        path: the file; a new one gets mode 0600.
        flags: as for `os.open`.
        named: the user named this very file, such as a mounted secret: links are followed, and the file may
            also be root's. Root may name a file of anyone.
        private: no other user may have a permission on it.
        foreign: it may be of any user, such as the source of a program.

    Raises:
        FileNotFoundError: there is none.
        UnusableFile: anything else.

    """
    try:
        descriptor = os.open(path, flags | _WITHOUT_WAITING | (0 if named else os.O_NOFOLLOW), 0o600)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise UnusableFile(path, _unopened(path, error)) from None
    try:
        if problem := _problem(os.fstat(descriptor), named=named, private=private, foreign=foreign):
            raise UnusableFile(path, problem)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_bytes(
    path: str | Path,
    *,
    most: int = MOST_BYTES,
    named: bool = False,
    private: bool = False,
    foreign: bool = False,
) -> bytes:
    """The content of a file of up to `most` bytes. Arguments and errors: see `open_own`."""
    with os.fdopen(open_own(path, named=named, private=private, foreign=foreign), "rb") as stream:
        try:
            content = stream.read(most + 1)
        except OSError as error:
            raise UnusableFile(path, f"cannot be read: {error.strerror}") from None
    if len(content) > most:
        raise UnusableFile(path, f"is too large: up to {most} bytes are allowed")
    return content


def read_text(path: str | Path, *, most: int = MOST_BYTES, named: bool = False, private: bool = False) -> str:
    """The content as text. Arguments and errors: see `open_own`; UnusableFile also when it is not UTF-8."""
    try:
        return read_bytes(path, most=most, named=named, private=private).decode("utf-8")
    except UnicodeDecodeError:
        raise UnusableFile(path, "is not text: UTF-8 is allowed") from None


def read_json(path: str | Path, *, most: int = MOST_BYTES, named: bool = False, private: bool = False) -> Any:
    """The JSON document in a file. Arguments and errors: see `open_own`; UnusableFile also for no JSON."""
    text = read_text(path, most=most, named=named, private=private)
    if text.count("[") + text.count("{") > MOST_BRACKETS:
        raise UnusableFile(path, f"holds too much: up to {MOST_BRACKETS} lists and objects are allowed")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UnusableFile(path, "is not valid JSON") from None


def replace(path: str | Path, text: str, mode: int = 0o600) -> None:
    """Write a file in one step: a reader sees the earlier content or the new one.

    Raises:
        OSError: the folder cannot be written, or a folder has the name.

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
    """Raise UnusableFile if the name is taken by something that a file must not replace, such as a device."""
    with suppress(FileNotFoundError):
        if problem := _wrong_kind(path.lstat().st_mode):
            raise UnusableFile(path, problem)


def make_private(folder: Path) -> None:
    """Make a folder, and the missing ones above it, with mode 0700 whatever the umask.

    Raises:
        OSError: it cannot be made, or is no folder.

    """
    if not folder.parent.exists():
        make_private(folder.parent)
    try:
        folder.mkdir(0o700)
        folder.chmod(0o700)
    except FileExistsError:
        if not folder.is_dir():
            raise UnusableFile(folder, "is not a folder") from None


def _unopened(path: str | Path, error: OSError | ValueError) -> str:
    if isinstance(error, ValueError):
        return f"cannot be a file: {error}"
    if error.errno == errno.ELOOP:
        return "is a link: a regular file is allowed"
    with suppress(OSError):
        if problem := _wrong_kind(os.lstat(path).st_mode):
            return problem
    return f"cannot be opened: {error.strerror}"


def _problem(found: os.stat_result, *, named: bool, private: bool, foreign: bool) -> str:
    if problem := _wrong_kind(found.st_mode):
        return problem
    if not (foreign or _is_mine(found) or (named and _may_be_named(found))):
        return f"belongs to another user (uid {found.st_uid}): one of this user is allowed"
    if private and found.st_mode & 0o077:
        return f"may be read or written by others (mode {found.st_mode & 0o777:04o}): chmod 600 it"
    return ""


def _wrong_kind(mode: int) -> str:
    if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
        return ""
    return f"is {_KINDS.get(stat.S_IFMT(mode), 'something else')}: a regular file is allowed"


def _is_mine(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid()


def _may_be_named(found: os.stat_result) -> bool:
    return found.st_uid == _ROOT or os.geteuid() == _ROOT
