"""Trainers that ended unexpectedly: one small file each, kept for a day beside the targets.

Whoever notices the end writes the file; the receiver exposes it as a series, from which an alert fires.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from heapwatch.runtime.own_files import open_own, read_bytes, replace

FOLDER = "lost"  # in the folder of the targets, where Prometheus does not look
KEPT_SECONDS = 86400.0

OUT_OF_MEMORY = "killed by the kernel, out of memory"
REBOOTED = "its machine was restarted"
SILENT = "silent, its target file was not renewed"
UNKNOWN = "killed or crashed, nothing recorded why"

_ENDING_SECONDS = 60.0  # without an exit status: it was cut off, by `os._exit` for example
_KEPT, _ENDING = ".json", ".ending"  # a record, and one that the exit status completes
_STATUS = "exit status {}"  # in words
_CLEAN_EXIT = _STATUS.format(0)
_MOST_BYTES = 4096


@dataclass(frozen=True)
class Lost:
    """A trainer that ended unexpectedly.

    Attributes:
        address: where it was scraped, `host:port`.
        trainer: its name; empty if unknown.
        cause: why it ended, in words.
        at: when that was noticed, in seconds since 1970.

    """

    address: str
    trainer: str
    cause: str
    at: float


def write(folder: Path, lost: Lost) -> None:
    """Keep a trainer for a day; replaces an earlier one of the same address.

    Raises:
        OSError: the folder cannot be written.

    """
    _write(_file(folder, lost.address, _KEPT), lost)


def end(folder: Path, lost: Lost) -> None:
    """Keep a trainer whose program ends now as lost if its exit status will not be 0; the cause is left out.

    Does nothing where the exit status cannot be known.

    Raises:
        OSError: the folder cannot be written.

    """
    path = _file(folder, lost.address, _ENDING)
    _write(path, lost)
    if not _append_exit_status(path):
        path.unlink()


def read(folder: Path) -> list[Lost]:
    """The trainers lost in the last day. What is older is removed; what is no such file is passed over."""
    found = []
    for path in sorted([*folder.glob(f"*{_KEPT}"), *folder.glob(f"*{_ENDING}")]):
        lost = _read(path)
        if lost is None:
            continue
        kept = KEPT_SECONDS if lost.cause else _ENDING_SECONDS
        if lost.cause == _CLEAN_EXIT or time.time() - lost.at > kept:
            with suppress(OSError):
                path.unlink()
        elif lost.cause:
            found.append(lost)
    return found


def _write(path: Path, lost: Lost) -> None:
    path.parent.mkdir(mode=path.parent.parent.stat().st_mode & 0o777, exist_ok=True)
    replace(path, json.dumps(asdict(lost)) + "\n", 0o644)


def _file(folder: Path, address: str, suffix: str) -> Path:
    return folder / (re.sub(r"[^A-Za-z0-9.-]", "_", address) + suffix)


def _read(path: Path) -> Lost | None:
    try:
        record, _, status = read_bytes(path, most=_MOST_BYTES, named=True).partition(b"\n")
        document = json.loads(record)
        address, trainer, cause = (str(document[name]) for name in ("address", "trainer", "cause"))
        if path.suffix == _ENDING and status:
            cause = _STATUS.format(status[-1])
        return Lost(address, trainer, cause, float(document["at"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _append_exit_status(path: Path) -> bool:
    """Have the C library append one byte, the exit status, to a file when this process ends by `exit(3)`.

    That is every end but a signal and `os._exit`. Returns False where the C library is not glibc.

    Raises:
        OSError: the file cannot be written.

    """
    libc = ctypes.CDLL(None)
    on_exit = getattr(libc, "on_exit", None)
    if on_exit is None:
        return False
    libc.fdopen.restype = ctypes.c_void_p
    file = libc.fdopen(open_own(path, os.O_WRONLY | os.O_APPEND), b"a")
    # It calls fputc(status, file), and then closes all files.
    return bool(file) and on_exit(libc.fputc, ctypes.c_void_p(file)) == 0
