"""What `heapwatch top` shows of the machine: its groups of processes, watched or not."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from heapwatch.cli.sources import read_all, registered_processes
from heapwatch.cli.top_source import Snapshot, snapshot_of
from heapwatch.judge.verdict import WORDS
from heapwatch.machine.groups import Groups
from heapwatch.machine.levels import GroupGrowth, MachineLevels
from heapwatch.text.numbers import size, size_change
from heapwatch.text.tables import aligned
from heapwatch.text.terminal import plain

COLUMNS = ("GROUP", "PROCESSES", "MEMORY", "SHARED", "GPU", "A MINUTE", "GROWING", "VERDICT")
NOT_ENTERED = "not entered yet"
_NO_PYTHON = "not Python"
_RECENT_SECONDS = 300.0
_ONCE_SECONDS = 5.0
_MOST_PRINTED = 30


@dataclass(frozen=True)
class Row:
    """A group: sizes in bytes, growth in bytes a minute, the verdict on its watched processes.

    `pid` is the one that is entered for all, `url` that of a watched one.
    """

    group: str
    processes: int
    growing: int
    private_bytes: int
    shared_bytes: int
    gpu_bytes: int
    bytes_per_minute: float
    verdict: str
    pid: int | None
    url: str | None = None

    def cells(self) -> tuple[str, ...]:
        """The columns."""
        return (
            plain(self.group, 48),
            f"{self.processes:,}" if self.processes else "",
            size(self.private_bytes) if self.processes else "",
            size(self.shared_bytes) if self.shared_bytes else "",
            size(self.gpu_bytes) if self.gpu_bytes else "",
            size_change(self.bytes_per_minute) if self.bytes_per_minute else "",
            f"{self.growing} of {self.processes}" if self.growing else "",
            self.verdict,
        )


class MachineSource:
    """Reads the groups of this machine, and the trainers among them that are watched."""

    def __init__(self, *, everyone: bool = False) -> None:
        self._groups = Groups(everyone=everyone)
        self._levels = MachineLevels()

    def read_for(self, seconds: float = _ONCE_SECONDS) -> list[Row]:
        """Read for so long that growth is known."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._levels.read(self._groups.members(), time.monotonic())
            time.sleep(0.5)
        return self.read()

    def read(self) -> list[Row]:
        """The groups now, the one that grows most first."""
        now = time.monotonic()
        self._levels.read(self._groups.members(), now)
        served = registered_processes()
        snapshots = dict(zip(served.values(), read_all([*served.values()], snapshot_of), strict=True))
        watched = {pid: (url, snapshots[url]) for pid, url in served.items()}
        return [_row(group, watched) for group in self._levels.groups(now - _RECENT_SECONDS)]


def _row(group: GroupGrowth, watched: dict[int, tuple[str, Snapshot]]) -> Row:
    seen = [watched[member.pid] for member in group.members if member.pid in watched]
    url, worst = max(seen, key=lambda one: _severity(one[1]), default=(None, None))
    first = next(iter([*group.growing, *group.members]), None)
    pid = first.pid if first is not None and first.is_python else None
    if worst is not None:
        verdict = worst.problem or worst.verdict or ""
    elif first is None:  # files in shared memory
        verdict = ""
    else:
        verdict = NOT_ENTERED if first.is_python else _NO_PYTHON
    return Row(
        group.name,
        len(group.members),
        len(group.growing) if group.matters else 0,
        group.private,
        group.shared,
        group.gpu,
        group.per_minute + group.shared_per_minute,
        verdict,
        pid,
        url,
    )


def _severity(one: Snapshot) -> int:
    words: list[str] = list(WORDS)
    return words.index(one.verdict) if one.verdict in words else -1


def printed(rows: Sequence[Row]) -> list[str]:
    """The rows as a table, as far as they fit on a screen."""
    shown, more = rows[:_MOST_PRINTED], len(rows) - _MOST_PRINTED
    lines = aligned([COLUMNS, *(row.cells() for row in shown)], right=range(1, 6))
    return [*lines, *([f"and {more} more groups"] if more > 0 else [])]
