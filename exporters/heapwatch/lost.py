"""Trainers that ended unexpectedly: one small file each, kept for a while beside the targets.

Whoever notices the end writes the file; the receiver exposes it as a series, from which an alert fires.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from heapwatch.runtime.own_files import read_json, replace

FOLDER = "lost"  # in the folder of the targets, where Prometheus does not look
KEPT_SECONDS = 86400.0
TERMINATED_SECONDS = 900.0  # somebody ended it, and knows

OUT_OF_MEMORY = "killed by the kernel, out of memory"
REBOOTED = "its machine was restarted"
SILENT = "silent, its target file was not renewed"
TERMINATED = "ended by SIGTERM"
UNKNOWN = "killed or crashed, nothing recorded why"

_MOST_BYTES = 4096


@dataclass(frozen=True)
class Lost:
    """A trainer that ended unexpectedly.

    Attributes:
        address: where it was scraped, `host:port`.
        trainer: its name; empty if unknown.
        cause: why it ended, in words.
        at: when its end was noticed, in seconds since 1970.

    """

    address: str
    trainer: str
    cause: str
    at: float


def write(folder: Path, lost: Lost) -> None:
    """Record a lost trainer; this replaces an earlier record of the same address.

    Raises:
        OSError: the folder cannot be written.

    """
    folder.mkdir(mode=folder.parent.stat().st_mode & 0o777, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9.-]", "_", lost.address)
    replace(folder / f"{name}.json", json.dumps(asdict(lost)) + "\n", 0o644)


def read(folder: Path) -> list[Lost]:
    """Return the recently lost trainers; remove older records and skip other files."""
    trainers = []
    for path in sorted(folder.glob("*.json")):
        lost = _read(path)
        if lost is None:
            continue
        if time.time() - lost.at <= (TERMINATED_SECONDS if lost.cause == TERMINATED else KEPT_SECONDS):
            trainers.append(lost)
        else:
            with suppress(OSError):
                path.unlink()
    return trainers


def _read(path: Path) -> Lost | None:
    try:
        document = read_json(path, most=_MOST_BYTES, any_owner=True)
        address, trainer, cause = (str(document[name]) for name in ("address", "trainer", "cause"))
        return Lost(address, trainer, cause, float(document["at"]))
    except (OSError, ValueError, LookupError, TypeError):
        return None
