"""Processes that the kernel ended for lack of memory, by their group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from heapwatch.machine.groups import Member
from heapwatch.measure.process.kernel_kills import kill_count, kill_counters


class Kills:
    """Compares the processes of each reading with those of the one before.

    Attributes:
        counts: kills by group since the start.

    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._counters: dict[Member, list[Path]] = {}
        self._before: dict[Path, int] = {}

    def update(self, members: Sequence[Member]) -> None:
        """Count the processes that were ended since the last reading: no more than the kernel counts."""
        previous = self._counters
        self._counters = {member: previous.get(member) or _counters(member) for member in members}
        files = {file for counters in (*previous.values(), *self._counters.values()) for file in counters[:1]}
        now = {file: count for file in files if (count := kill_count(file)) is not None}
        more = {file: count - self._before.get(file, count) for file, count in now.items()}
        for member in previous.keys() - self._counters.keys():
            for file in previous[member][:1]:
                if more.get(file, 0) > 0:
                    more[file] -= 1
                    self.counts[member.group] += 1
        self._before = now


def _counters(member: Member) -> list[Path]:
    """The counter that exists and is nearest to the process."""
    return [file for file in kill_counters(member.pid) if file.exists()][:1]
