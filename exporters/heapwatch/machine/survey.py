"""Reads all processes for 25 seconds to find the groups that grow.

Files in /dev/shm are a group without members: whose they are is unknown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import NamedTuple

from heapwatch.machine.groups import Groups
from heapwatch.machine.levels import GroupGrowth, MachineLevels
from heapwatch.text.numbers import counted, size, size_change
from heapwatch.text.tables import aligned

SURVEY_SECONDS = 25.0
_EVERY_SECONDS = 1.0
_STARTING_SECONDS = 30.0  # in which a program loads its modules
_TIME_SHARE = 0.2  # for reading; with thousands of processes readings are rarer, and the survey is longer
_FEWEST_READINGS = 9  # by which growth is told from a single rise
_COLUMNS = ("GROUP", "PROCESSES", "MEMORY", "SHARED", "A MINUTE", "GROWING")
_LONGEST_LIST = 15


class Survey(NamedTuple):
    """The groups of processes after some seconds of reading, the one that grows most first.

    `began` is the start of the survey in seconds since the boot. `sharing` are the groups that use files in
    /dev/shm.
    """

    began: float
    seconds: float
    groups: tuple[GroupGrowth, ...]
    sharing: frozenset[str] = frozenset()

    @property
    def growing(self) -> list[GroupGrowth]:
        """The groups whose growth matters; those that are just starting come last."""
        growing = [group for group in self.groups if group.matters]
        return sorted(growing, key=self._is_starting)

    @property
    def to_enter(self) -> list[GroupGrowth]:
        """The groups of which one process is worth entering, the most promising first.

        The owner of a file in /dev/shm is unknown: if these grow, it may be any group that shares memory.
        """
        growing = [group for group in self.growing if group.growing or group.shared_per_minute]
        if any(not group.members for group in growing):
            growing += [group for group in self.groups if group.name in self.sharing]
        return [group for group in dict.fromkeys(growing) if group.members]

    def _is_starting(self, group: GroupGrowth) -> bool:
        began = self.began - _STARTING_SECONDS
        return bool(group.growing) and all(member.started > began for member in group.growing)

    @property
    def processes(self) -> int:
        """The number of processes of all groups."""
        return sum(len(group.members) for group in self.groups)

    def lines(self) -> list[str]:
        """A table of the groups that grow; a sentence if none grows."""
        groups = sum(1 for group in self.groups if group.members)
        looked_at = (
            f"Looked at {counted(self.processes, 'process', 'processes')} in {counted(groups, 'group')}"
            f" for {self.seconds:.0f} s."
        )
        if not self.growing:
            return [f"{looked_at} None grows by an amount that matters."]
        rows = [_COLUMNS, *map(_row, self.growing[:_LONGEST_LIST])]
        more = len(self.growing) - _LONGEST_LIST
        return [looked_at, *aligned(rows, right=range(1, 5)), *([f"and {more} more"] if more > 0 else [])]


def survey(
    groups: Groups,
    among: Callable[[], Collection[int] | None] = lambda: None,
    seconds: float = SURVEY_SECONDS,
    pause: Callable[[float], None] = time.sleep,
) -> Survey:
    """Read the memory of processes for some seconds.

    Args:
        groups: names the groups.
        among: returns the process ids to look at; None for all.
        seconds: how long to look.
        pause: waits for a number of seconds.

    """
    levels, began = MachineLevels(), time.monotonic()
    readings = 0
    while (now := time.monotonic()) <= began + seconds or readings < _FEWEST_READINGS:
        spent = time.thread_time()
        levels.read(groups.members(among()), now)
        readings += 1
        pause(max(_EVERY_SECONDS, (time.thread_time() - spent) / _TIME_SHARE))
    seconds_seen = time.monotonic() - began
    all_groups = levels.groups()
    sharing = {
        group.name
        for group in all_groups
        if any(member.is_python and groups.shares_memory(member.pid) for member in group.members)
    }
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME) - seconds_seen
    return Survey(since_boot, seconds_seen, tuple(all_groups), frozenset(sharing))


def _row(group: GroupGrowth) -> tuple[str, ...]:
    growing = f"{len(group.growing)} of {len(group.members)}"
    return (
        group.name,
        f"{len(group.members):,}" if group.members else "",
        size(group.private) if group.members else "",
        size(group.shared) if group.shared else "",
        size_change(group.per_minute + group.shared_per_minute),
        f"{growing}: {', '.join(str(member.pid) for member in group.growing[:3])}" if group.growing else "",
    )
