"""Why the kernel ended a process, as far as it tells: its counters of OOM kills, and its log."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

_CGROUPS = Path("/sys/fs/cgroup")
_MACHINE = Path("/proc/vmstat")
_LOG = Path("/dev/kmsg")
_RECENT_SECONDS = 120.0
_MOST_RECORDS = 20_000
_COUNT = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)

Reason = Literal["out of memory", "segmentation fault"]


class _Count(NamedTuple):
    file: Path
    kills: int


class KernelKills:
    """Knows the OOM kills of each process's control group as of the last update."""

    def __init__(self) -> None:
        self._counts: dict[int, list[_Count]] = {}

    def update(self, pids: Iterable[int]) -> None:
        """Note the counts of live processes' control groups, and of the machine; forget all others."""
        self._counts = {
            pid: [_Count(file, kills) for file in _files_of(pid) if (kills := _kills(file)) is not None]
            for pid in pids
        }

    def reason(self, pid: int) -> Reason | None:
        """Why a process that has just ended was ended; None if the kernel does not tell."""
        logged = _logged(pid)
        if logged is not None:
            return logged
        for file, before in self._counts.get(pid, ()):  # a control group may have ended with its process
            kills = _kills(file)
            if kills is not None:
                return "out of memory" if kills > before else None
        return None


def _files_of(pid: int) -> list[Path]:
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    files = []
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        below = path.lstrip("/")
        if not controllers:
            files += [_CGROUPS / below / name for name in ("memory.events.local", "memory.events")]
        elif "memory" in controllers.split(","):
            files.append(_CGROUPS / "memory" / below / "memory.oom_control")
    return [*files, _MACHINE]


def _kills(file: Path) -> int | None:
    try:
        found = _COUNT.search(file.read_text(encoding="ascii", errors="replace"))
    except OSError:
        return None
    return int(found[1]) if found else None


def _logged(pid: int) -> Reason | None:
    """What the kernel's log of the last two minutes says about the process; None if it is not readable."""
    try:
        log = os.open(_LOG, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    reasons: dict[str, Reason] = {
        f"Killed process {pid} (": "out of memory",
        f"[{pid}]: segfault at": "segmentation fault",
    }
    reason: Reason | None = None
    try:
        for _ in range(_MOST_RECORDS):
            record = os.read(log, 8192).decode("utf-8", "replace")
            if not record:
                break
            head, _, message = record.partition(";")
            if time.monotonic() - float(head.split(",")[2]) / 1e6 < _RECENT_SECONDS:
                reason = next((why for text, why in reasons.items() if text in message), reason)
    except (OSError, ValueError, LookupError):  # no further record, or one that was overwritten
        pass
    finally:
        os.close(log)
    return reason
