"""How the memory of a process grows, whether that matters, and how much time is left."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from heapwatch.judge.component import MATERIAL_BYTES, MATERIAL_SHARE, Component
from heapwatch.judge.level import NO_GROWTH, FloorGrowth, LevelSeries
from heapwatch.judge.trainer import Leak

WARM_UP_SHARE = 0.25  # share of the time watched that is left out at its beginning
WARM_UP_SECONDS = 60.0  # the most that is left out
_ENDS_MINUTES = 24 * 60.0  # growth that fills the memory within a day matters
_SURE_SPAN = 60.0  # seconds of growth before a time until the limit is given
_UNSURE_SECONDS = 30.0  # that range is wider by this share of the time for which memory has grown
_LONGEST_AHEAD = 7 * 86400.0
_SLOWED, _STILL = 0.5, 0.1  # shares of the overall rate
_TESTED_SECONDS = 120.0
_RECENT_SECONDS = (60.0, 180.0)
_FAST_SHARE = 0.01  # of the resident memory, in a minute


class TimeLeft(NamedTuple):
    """The time until memory reaches its limit, in seconds: the least and the most that the growth allows."""

    least: float
    most: float


@dataclass(eq=False)
class MemoryLevels:
    """The memory of a process over time, in bytes; a part that cannot be read has no readings.

    Attributes:
        resident: resident memory of this process.
        private: anonymous and shared memory: all that the kernel cannot drop.
        virtual: size of the address space in use.
        shared: resident pages of shared memory, with those of Ray's object store that it stands for.
        used: memory that the C allocator has handed out, touched or not.
        retained: freed memory that the C allocator keeps resident, at most.
        gpu: memory that the allocators of torch and JAX have handed out on GPUs.
        devices: the same of each GPU, by its number.
        gpu_left: bytes that they can still hand out on each GPU; without those where that is unknown.
        workers: anonymous resident memory of all child processes: what they share counts in this one.
        processes: number of child processes.
        steps: number of steps that the program has counted.
        cycles: number of cycles that it has ended.
        granted: seconds in which the main thread did not wait for a CPU that others used.
        entities: number of entities and bodies that the trainer counts, by component.
        limit: the memory limit.
        ceiling: memory that this process and its child processes can hold, beside other programs; None
            while unknown. More than before counts once it has lasted for a quarter of an hour, and at once
            when a child process was started or has ended. Pages that a fork shares count in each process.
        startup_end: when the program last loaded a dozen modules or more; until then it is starting.
        first_step_at: when the first step was seen; minus infinity if the program counts none.
        cleaned_at: when a cleanup last gave back what had grown, from which on growth counts anew.

    """

    limit: float
    startup_end: float
    resident: LevelSeries = field(default_factory=LevelSeries)
    private: LevelSeries = field(default_factory=LevelSeries)
    virtual: LevelSeries = field(default_factory=LevelSeries)
    shared: LevelSeries = field(default_factory=LevelSeries)
    used: LevelSeries = field(default_factory=LevelSeries)
    retained: LevelSeries = field(default_factory=LevelSeries)
    gpu: LevelSeries = field(default_factory=LevelSeries)
    devices: defaultdict[int, LevelSeries] = field(default_factory=lambda: defaultdict(LevelSeries))
    gpu_left: dict[int, int] = field(default_factory=dict)
    workers: LevelSeries = field(default_factory=LevelSeries)
    processes: LevelSeries = field(default_factory=LevelSeries)
    steps: LevelSeries = field(default_factory=LevelSeries)
    cycles: LevelSeries = field(default_factory=LevelSeries)
    granted: LevelSeries = field(default_factory=LevelSeries)
    entities: defaultdict[Component, LevelSeries] = field(default_factory=lambda: defaultdict(LevelSeries))
    ceiling: float | None = None
    first_step_at: float = -math.inf
    cleaned_at: float = -math.inf

    @property
    def progress(self) -> tuple[LevelSeries, ...]:
        """Counts by which even growth is even, beside the time: a busy machine slows a program down."""
        return self.steps, self.cycles, self.granted

    @property
    def own(self) -> LevelSeries:
        """Private memory; resident memory where the kernel does not tell them apart."""
        return self.resident if self.private.last is None else self.private

    @property
    def held(self) -> float:
        """The private bytes with those on GPUs."""
        return (self.own.last or 0.0) + (self.gpu.last or 0.0)

    def of(self, leak: Leak) -> LevelSeries:
        """The readings of a level of memory that leaks."""
        if leak.component.resource == "gpu_memory":
            return self.gpu
        return self.workers if leak.component.name == "worker" else self.own


@dataclass(frozen=True)
class MemoryGrowth:
    """The growth of a process's memory since its start, or since a leak began.

    Attributes:
        memory: the readings.
        began: when they began, in seconds of their clock.
        now: the time of this evaluation.
        leaks: what leaks by the judge.

    """

    memory: MemoryLevels
    began: float
    now: float
    leaks: tuple[Leak, ...] = ()

    @cached_property
    def start(self) -> float:
        """The time from which growth of containers counts.

        It is a while after the first step or the last cleanup, or when the level that leaks most began to
        rise. Without a leak a new rise does not count by itself: programs have phases.
        """
        of_memory = [leak for leak in self.leaks if leak.component.resource in ("memory", "gpu_memory")]
        if not of_memory:
            return self._warmed_up
        worst = max(of_memory, key=lambda leak: leak.per_minute)
        return self.memory.of(worst).rise_began(self._warmed_up)

    def leaks_in(self, resource: str, name: str | None = None) -> bool:
        """Whether a resource leaks, or one component of it."""
        return any(
            leak.component.resource == resource and name in (None, leak.component.name) for leak in self.leaks
        )

    @cached_property
    def startup_end(self) -> float:
        """The time from which growth of the process counts: loading modules is warm-up, too."""
        return max(self.start, self.memory.startup_end)

    @cached_property
    def _warmed_up(self) -> float:
        began = max(self.began, self.memory.first_step_at, self.memory.cleaned_at)
        return began + min(WARM_UP_SECONDS, WARM_UP_SHARE * (self.now - began))

    @property
    def resident(self) -> float:
        """Resident bytes at the last reading."""
        return self.memory.resident.last or 0.0

    @cached_property
    def own(self) -> FloorGrowth:
        """Growth of the process's private memory. Pages of files do not count: the kernel can drop them."""
        return self.memory.own.growth(self.startup_end)

    @cached_property
    def workers(self) -> FloorGrowth:
        """Growth of the child processes' memory, without what they took when they were started."""
        return self.memory.workers.growth(self._workers_start)

    @cached_property
    def _workers_start(self) -> float:
        started = self.memory.processes.changed_at
        # With workers that come and go all the time, growth counts from the start.
        lasts = started <= (self.startup_end + self.now) / 2
        return max(self.startup_end, started) if lasts else self.startup_end

    @cached_property
    def are_measured(self) -> bool:
        """Whether memory was read often and long enough to say that it does not grow.

        Of child processes and GPUs that holds where there are any.
        """
        (own, _), (workers, _), (gpu, _) = self.parts
        return (
            own.is_measured(self.startup_end)
            and (not workers.last or workers.is_measured(self._workers_start))
            and (not gpu.last or gpu.is_measured(self.startup_end))
        )

    @cached_property
    def faster(self) -> tuple[LevelSeries, FloorGrowth]:
        """Of the process's own memory and its GPU memory the one that grows faster, with its growth."""
        own, _, gpu = self.parts
        return gpu if self.is_on_gpu else own

    @cached_property
    def is_on_gpu(self) -> bool:
        """Whether the process's GPU memory grows faster than all its other memory."""
        (_, own), (_, workers), (_, gpu) = self.parts
        return gpu.per_second > own.per_second + workers.per_second

    @property
    def faster_leaks(self) -> bool:
        """Whether the memory that grows faster leaks by the judge."""
        return self.leaks_in("gpu_memory") if self.is_on_gpu else self.leaks_in("memory", "trainer")

    @property
    def gpu_per_minute(self) -> float:
        """Growth in bytes a minute of GPU memory."""
        return 60 * self.parts[2][1].per_second

    @cached_property
    def parts(self) -> tuple[tuple[LevelSeries, FloorGrowth], ...]:
        """The process, its child processes and its GPU memory, with their growth."""
        gpu = self.memory.gpu.growth(self.startup_end)
        return (self.memory.own, self.own), (self.memory.workers, self.workers), (self.memory.gpu, gpu)

    @cached_property
    def per_minute(self) -> float:
        """Growth in bytes a minute of the process, its child processes and its GPU memory together."""
        return 60 * sum(growth.per_second for _, growth in self.parts)

    @cached_property
    def most_per_minute(self) -> float:
        """Growth in bytes a minute that the noise of the readings may hide, at most."""
        return 60 * sum(
            (growth.total + growth.swing) / growth.span for _, growth in self.parts if growth.span
        )

    @cached_property
    def rises_fast_by(self) -> float:
        """Bytes a minute by which memory is above all it was until a minute ago, or three minutes ago.

        It is 0 if that is less than 1 % of the process. A sawtooth that comes back to its peak does not rise.
        Memory is not compared with a time in the start-up, when modules were still loaded.
        """
        ago = [self.now - seconds for seconds in _RECENT_SECONDS if self.now - seconds >= self.startup_end]
        highs = (sum(series.new_high(time) for series, _ in self.parts) for time in ago)
        risen = 60 * max(highs, default=0.0)
        return risen if risen > _FAST_SHARE * self.resident else 0.0

    @property
    def is_fast(self) -> bool:
        """Whether it grows by more than 1 % a minute, which is judged after six minutes."""
        return max(self.rises_fast_by, self.per_minute) > _FAST_SHARE * self.resident

    @cached_property
    def slowed_down(self) -> bool:
        """Whether all that grew by an amount that matters was tested to slow down, or to have ended.

        Its last quarter has less than half of the overall rate; so has its rise above all that it was before,
        which the floor of a sawtooth does not show; or it has hardly risen above that.
        """
        return all(
            self._slows(series, growth)
            for series, growth in self.parts
            if self.matters(60 * growth.per_second)
        )

    def _slows(self, series: LevelSeries, growth: FloorGrowth) -> bool:
        recent = series.new_high(self.now - max(_TESTED_SECONDS, growth.span / 4)) / growth.per_second
        return recent < _STILL or max(recent, growth.lasting) < _SLOWED

    @property
    def material(self) -> float:
        """The least rise in bytes that counts."""
        return max(MATERIAL_BYTES, MATERIAL_SHARE * self.resident)

    @cached_property
    def growing_seconds(self) -> float:
        """How long memory has grown: since its rise began, if it stood still before."""
        series, _ = self.faster
        return self.now - max(self.startup_end, series.rise_began(self.startup_end))

    @cached_property
    def left(self) -> float:
        """Bytes that can still be taken of the memory that grows faster; infinity where that is unknown."""
        if not self.is_on_gpu:
            return self.ram_left
        device, _ = self._fullest
        return self.memory.gpu_left.get(device, math.inf)

    @property
    def fastest_device(self) -> int:
        """The number of the GPU on which memory grows fastest."""
        return self._fullest[0]

    @property
    def _fullest(self) -> tuple[int, FloorGrowth]:
        """The GPU on which memory grows fastest."""
        growths = [(at, level.growth(self.startup_end)) for at, level in self.memory.devices.items()]
        return max(growths, key=lambda one: one[1].per_second, default=(0, NO_GROWTH))

    @property
    def ram_left(self) -> float:
        """Bytes that this process and its child processes can still take."""
        held = self.resident + (self.memory.workers.last or 0.0)
        most = self.memory.limit if self.memory.ceiling is None else self.memory.ceiling
        return max(0.0, most - held)

    @cached_property
    def time_left(self) -> tuple[TimeLeft | None, bool]:
        """The time until the memory is used up, and whether it is that of a GPU, which may end first.

        The time is None while no growth is sure, or if it is a week or more.
        """
        device, growth = self._fullest
        ram = self._until(self.ram_left, self.own, self.workers)
        gpu = self._until(self.memory.gpu_left.get(device, math.inf), growth)
        if gpu is None or (ram is not None and ram.most < gpu.most):
            return ram, False
        return gpu, True

    def _until(self, left: float, *growths: FloorGrowth) -> TimeLeft | None:
        """The time until so many bytes are taken by what grows."""
        sure = [growth for growth in growths if growth.rising and growth.span >= _SURE_SPAN]
        slow = sum(growth.per_second * min(1.0, growth.lasting) for growth in sure)
        fast = sum(growth.per_second * max(1.0, growth.lasting) for growth in sure)
        if slow <= 0 or not self.matters(60 * fast):
            return None
        unsure = 1 + _UNSURE_SECONDS / max(growth.span for growth in sure)
        least, most = left / fast / unsure, left / slow * unsure
        return TimeLeft(least, most) if least < _LONGEST_AHEAD else None

    def recent_per_minute(self, seconds: float) -> float:
        """By how many bytes a minute this process, its child processes and its GPU memory grew lately.

        It is the difference of two readings, so it may be a swing. A part that was not read for so long does
        not count.
        """
        grown = 0.0
        for part in (self.memory.own, self.memory.workers, self.memory.gpu):
            earlier = part.at(self.now - seconds)
            if earlier is not None and part.last is not None:
                grown += part.last - earlier
        return 60 * grown / seconds

    def matters(self, bytes_per_minute: float) -> bool:
        """Whether growth at this rate is material.

        It is if one hour of it is a material rise, or if one day of it fills the memory.
        """
        return bytes_per_minute * 60 >= self.material or bytes_per_minute * _ENDS_MINUTES >= self.left > 0
