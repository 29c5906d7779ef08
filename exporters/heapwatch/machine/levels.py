"""Reads the memory of processes over time, and computes the growth of their groups."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from heapwatch.judge.component import Component, material
from heapwatch.judge.level import LevelSeries
from heapwatch.machine.groups import Member
from heapwatch.measure.gpu import NvmlSession
from heapwatch.measure.process.procfs import SHARED_FILES, memory_parts

_ALIKE = 0.5  # of the growth of the member that grew most
_MATERIAL_MINUTES = 60.0  # in which growth has to be a rise that matters


@dataclass(frozen=True)
class GroupGrowth:
    """The memory of a group and its growth, in bytes and bytes a minute.

    Attributes:
        name: name of the group.
        members: its live processes.
        private: anonymous memory of all; pages shared after a fork count in each.
        shared: the most shared memory that one of them maps, since they map the same.
        per_minute: growth of private and GPU memory of all members.
        shared_per_minute: growth of the shared memory.
        growing: the members that grow like the one that grows most, the fastest first.
        each_per_minute: growth of the one that grows most.
        lasts: whether it rises in each quarter of the time.
        gpu: memory of all on GPUs; its growth counts as growth of private memory.

    """

    name: str
    members: tuple[Member, ...]
    private: int
    shared: int
    per_minute: float
    shared_per_minute: float = 0.0
    growing: tuple[Member, ...] = ()
    each_per_minute: float = 0.0
    lasts: bool = False
    gpu: int = 0

    @property
    def held(self) -> int:
        """The level that is judged: private memory, or the size of files in shared memory."""
        return self.private if self.members else self.shared

    @property
    def held_per_minute(self) -> float:
        """Growth of the level that is judged."""
        return self.per_minute if self.members else self.shared_per_minute

    @property
    def matters(self) -> bool:
        """Whether an hour of this growth is a rise that matters."""
        component, fastest = Component("memory", self.name), max(self.each_per_minute, self.shared_per_minute)
        return fastest * _MATERIAL_MINUTES >= material(component, self.private / max(1, len(self.members)))


@dataclass
class _Levels:
    started_at: float  # from which growth counts
    private: LevelSeries = field(default_factory=LevelSeries)
    shared: LevelSeries = field(default_factory=LevelSeries)
    gpu: LevelSeries = field(default_factory=LevelSeries)


class MachineLevels:
    """Reads the memory of processes and computes the growth of their groups.

    Args:
        proc: where the process file system is mounted.
        startup_seconds: growth of a process that is younger does not count.
        shared_files: where the file system of shared memory is mounted.

    """

    def __init__(
        self, proc: str = "/proc", startup_seconds: float = 0.0, shared_files: str = SHARED_FILES
    ) -> None:
        self._proc = proc
        self._startup_seconds = startup_seconds
        self._levels: dict[Member, _Levels] = {}
        self._nvml = NvmlSession(environment={})
        self._shared_files = shared_files
        self._files = LevelSeries()

    def read(self, members: Iterable[Member], now: float) -> None:
        """Read each process, at a time in seconds; processes that are not among them are forgotten."""
        previous, self._levels = self._levels, {}
        on_gpus = gpu_bytes(self._nvml)
        since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        for member in members:
            parts = memory_parts(member.pid, self._proc)
            if parts is not None:
                started_at = now - (since_boot - member.started) + self._startup_seconds
                levels = self._levels[member] = previous.get(member) or _Levels(started_at)
                levels.private.add(now, parts.anonymous)
                # What Ray's processes map is its object store, whatever each of them keeps there.
                levels.shared.add(now, 0 if member.is_of_ray else parts.shared)
                if on_gpus is not None:
                    levels.gpu.add(now, on_gpus[member.pid])
        with suppress(OSError):
            files = os.statvfs(self._shared_files)
            self._files.add(now, (files.f_blocks - files.f_bfree) * files.f_frsize)

    def private(self, member: Member) -> int | None:
        """Bytes of private memory at the last reading; None of a process that was not read then."""
        levels = self._levels.get(member)
        return None if levels is None else round(levels.private.last or 0.0)

    def groups(self, since: float = float("-inf")) -> list[GroupGrowth]:
        """All groups with their growth from a time on, the one that grows most first."""
        by_name: defaultdict[str, list[Member]] = defaultdict(list)
        for member in self._levels:
            by_name[member.group].append(member)
        groups = [self._group(name, members, since) for name, members in by_name.items()]
        if self._files.last:  # a group of its own, as much of it may be mapped by no process any more
            growth = self._files.growth(since)
            per_minute = 60 * growth.per_second
            size = round(self._files.last)
            groups.append(GroupGrowth(SHARED_FILES, (), 0, size, 0.0, per_minute, lasts=growth.rising))
        return sorted(groups, key=lambda group: (-group.per_minute - group.shared_per_minute, group.name))

    def _group(self, name: str, members: list[Member], since: float) -> GroupGrowth:
        parts = {}
        growth = {}
        for member in members:
            levels = self._levels[member]
            start = max(since, levels.started_at)
            parts[member] = levels.private.growth(start), levels.gpu.growth(start)
            growth[member] = 60 * sum(part.per_second for part in parts[member])
        shared = max((self._levels[member].shared for member in members), key=lambda level: level.last or 0.0)
        shared_growth = shared.growth(since)
        fastest = sorted(members, key=lambda member: -growth[member])
        most = growth[fastest[0]]
        return GroupGrowth(
            name,
            tuple(members),
            round(sum(self._levels[member].private.last or 0.0 for member in members)),
            round(shared.last or 0.0),
            sum(growth.values()),
            60 * shared_growth.per_second,
            tuple(member for member in fastest if most > 0 and growth[member] >= _ALIKE * most),
            most,
            shared_growth.rising or any(part.rising for part in parts[fastest[0]]),
            round(sum(self._levels[member].gpu.last or 0.0 for member in members)),
        )


def gpu_bytes(session: NvmlSession) -> Counter[int] | None:
    """Bytes on all GPUs by process id; None without a driver, or if that is lost.

    In a container the driver may list the ids that processes have outside: these are then no known processes.
    """
    sizes: Counter[int] = Counter()
    try:
        devices = session.devices()
        for name in devices:
            for process in session.library.nvmlDeviceGetComputeRunningProcesses(session.handle(name)):
                sizes[process.pid] += process.usedGpuMemory or 0
    except Exception as error:
        if not isinstance(error, getattr(session.library, "NVMLError", ())):
            raise
        session.disconnect()
        return None
    return sizes if devices else None
