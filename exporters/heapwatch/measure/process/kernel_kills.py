"""Detects OOM kills of processes by the kernel's counters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_MACHINE = Path("/proc/vmstat")
OUT_OF_MEMORY = "out of memory"
_COUNT = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


class KernelKills:
    """The OOM kill counts of each process's control groups at the last update."""

    def __init__(self) -> None:
        self._counts: dict[int, list[tuple[Path, int]]] = {}

    def update(self, pids: Iterable[int]) -> None:
        """Note the counts of live processes' control groups, and of the machine; forget all others."""
        self._counts = {
            pid: [(file, kills) for file in kill_counters(pid) if (kills := kill_count(file)) is not None]
            for pid in pids
        }

    def reason(self, pid: int) -> str | None:
        """Why a process that has just ended was ended; None if the kernel does not tell."""
        for file, earlier in self._counts.get(pid, ()):  # a control group may have ended with its process
            kills = kill_count(file)
            if kills is not None:
                return OUT_OF_MEMORY if kills > earlier else None
        return None


def kill_counters(pid: int) -> list[Path]:
    """The files that count the kills in a process's control groups, its own first; then the machine's."""
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


def kill_count(file: Path) -> int | None:
    """The kills that a file counts; None where there is no such file."""
    try:
        match = _COUNT.search(file.read_text(encoding="ascii", errors="replace"))
    except OSError:
        return None
    return int(match[1]) if match else None
