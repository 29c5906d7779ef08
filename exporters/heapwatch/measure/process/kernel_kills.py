"""Detects OOM kills of processes by the kernel's counters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from heapwatch.measure.process.memory import control_groups

_MACHINE = Path("/proc/vmstat")
_COUNT = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)


class KernelKills:
    """Tells which processes the kernel has killed, by the counts of their control groups."""

    def __init__(self) -> None:
        self._counters: dict[int, list[Path]] = {}
        self._counts: dict[Path, int] = {}

    def update(self, pids: Iterable[int]) -> None:
        """Read the counts of live processes' control groups, and of the machine; forget all others."""
        self._counters = {pid: self._counters.get(pid) or kill_counters(pid) for pid in pids}
        files = set(chain.from_iterable(self._counters.values()))
        self._counts = {file: kills for file in files if (kills := kill_count(file)) is not None}

    def has_killed(self, pid: int) -> bool:
        """Whether a process that has ended since the last update was killed; each kill counts for one."""
        for file in self._counters.get(pid, ()):  # a control group may have ended with its process
            kills = kill_count(file)
            if kills is not None and file in self._counts:
                is_killed = kills > self._counts[file]
                self._counts[file] += is_killed
                return is_killed
        return False


def kill_counters(pid: int) -> list[Path]:
    """The files that count the kills in a process's control groups, its own first; then the machine's."""
    groups = control_groups(Path(f"/proc/{pid}"))
    return [*(folder / "memory.events" for folder, version_1 in groups if not version_1), _MACHINE]


def kill_count(file: Path) -> int | None:
    """The kills that a file counts; None where there is no such file."""
    try:
        match = _COUNT.search(file.read_text(encoding="ascii", errors="replace"))
    except OSError:
        return None
    return int(match[1]) if match else None
