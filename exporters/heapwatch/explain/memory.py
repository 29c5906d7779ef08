"""The parts of a process's memory over time, and a verdict on them by the definition of the leak rules."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psutil

from heapwatch.judge.judge import HELD_EVALUATIONS
from heapwatch.judge.leak import WINDOWS, growth_of
from heapwatch.judge.observed import YOUNG_CYCLES, Process
from heapwatch.collectors.readings import MEMORY, Component
from heapwatch.judge.rates import STEP_SECONDS, Values, steps
from heapwatch.collectors.progress import Progress
from heapwatch.judge.level import LevelSeries
from heapwatch.measure.gpu import POOLS, NvmlSession, Pool, free_bytes
from heapwatch.measure.process.memory import ResidentMemory, free_memory, malloc_bytes, memory_limit
from heapwatch.measure.process.own_time import own_time
from heapwatch.measure.process.process_tree import descendants, private_bytes

# Largest share of the time for reading a source; together a third of what all explaining may take.
_SHARE, _MALLOC_SHARE, _WORKERS_SHARE = 0.0001, 0.0002, 0.0002
_PARTS_SECONDS = 1.0
# A rate needs five readings, and a verdict comes after 40 seconds, of which the first ten do not count. A
# source that costs no more than this is read often enough at the start.
FIRST_SECONDS, FIRST_PAUSE_SECONDS = 120.0, 4.0
_FIRST_COST_SECONDS, _FIRST_SHARE = 0.02, 0.0025
_MANY_MODULES = 12
_MOST_WORKERS = 512
_CEILING_SECONDS, _CEILINGS = 60.0, 30  # half an hour of what other programs left
_CHILDLESS_SECONDS = 5.0  # between searches for child processes, as long as none was found
_STATUS = Path("/proc/self/status")
_FIELD = re.compile(rb"^(RssAnon|RssShmem|VmSize):\s+(\d+) kB$", re.MULTILINE)


NO_PROGRESS = Progress()


class ProcessMemory:
    """Readings of a process's memory, in bytes; a part that cannot be read has no readings.

    Args:
        clock: monotonic seconds.
        progress: returns the progress that the program reported.

    Attributes:
        resident: resident memory of this process.
        private: anonymous and shared memory: all that the kernel cannot drop.
        virtual: size of the address space in use.
        shared: resident pages of shared memory.
        used: memory that the C allocator has handed out, touched or not.
        retained: freed memory that the C allocator keeps resident, at most.
        gpu: memory that the allocators of torch and JAX have handed out on GPUs.
        devices: the same of each GPU, by its number.
        gpu_left: bytes that they can still hand out on each GPU; without those where that is unknown.
        workers: resident memory of all child processes that belongs to no file.
        processes: number of child processes.
        steps: number of steps that the program has counted.
        cycles: number of cycles that it has ended.
        limit: the memory limit.
        ceiling: memory that this process and its child processes can hold, beside other programs; None
            while unknown. More than before counts once it has lasted for a quarter of an hour, and at once
            when a child process was started or has ended. Pages that a fork shares count in each process.
        history: levels for the verdict on growth that no object explains.
        startup_end: when the program last loaded a dozen modules or more; until then it is starting.
        first_step_at: when the first step was seen; minus infinity if the program counts none.

    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        progress: Callable[[], Progress] = lambda: NO_PROGRESS,
    ) -> None:
        self.resident = LevelSeries()
        self.private = LevelSeries()
        self.shared = LevelSeries()
        self.virtual = LevelSeries()
        self.used = LevelSeries()
        self.retained = LevelSeries()
        self.gpu = LevelSeries()
        self.devices: defaultdict[int, LevelSeries] = defaultdict(LevelSeries)
        self.gpu_left: dict[int, int] = {}
        self._pools: list[dict[int, Pool]] = []
        self._nvml = NvmlSession()
        self.workers = LevelSeries()
        self.processes = LevelSeries()
        self.steps = LevelSeries()
        self.cycles = LevelSeries()
        self.limit = memory_limit()
        self.ceiling: float | None = None
        self._ceilings: deque[float] = deque(maxlen=_CEILINGS)
        self._ceiling_due = float("-inf")
        self.history = LevelHistory()
        self._began = self.startup_end = clock()
        self.first_step_at = float("-inf")
        self._modules = 0
        self._progress = progress
        self._clock = clock
        self._read_resident = ResidentMemory()
        self._due: dict[str, float] = {}

    def close(self) -> None:
        """Close what was opened for reading; what is read later takes longer."""
        self._nvml.disconnect()
        self._read_resident.close()

    def read_resident(self) -> None:
        """Read the resident memory, which takes about a microsecond."""
        now = self._clock()
        self.resident.add(now, self._read_resident.read())
        if len(sys.modules) >= self._modules + _MANY_MODULES:
            self._modules, self.startup_end = len(sys.modules), now
        progress = self._progress()
        for series, count in ((self.steps, progress.steps), (self.cycles, progress.cycles)):
            if count is not None:
                series.add(now, count)
        if self.first_step_at < 0 and (progress.steps or progress.cycles):
            self.first_step_at = now
        if self.history.is_due(now):
            levels = {name: level.last for name, level in self.levels().items() if level.last is not None}
            self.history.add(now, levels, progress.cycles)

    @property
    def own(self) -> LevelSeries:
        """Private memory; resident memory where the kernel does not tell them apart."""
        return self.resident if self.private.last is None else self.private

    @property
    def held(self) -> float:
        """The private bytes with those on GPUs."""
        return (self.own.last or 0.0) + (self.gpu.last or 0.0)

    def levels(self) -> dict[str, LevelSeries]:
        """The levels that `history` is a history of, by its names."""
        return {
            OWN: self.own,
            RETAINED: self.retained,
            VIRTUAL: self.virtual,
            "gpu": self.gpu,
            "shared": self.shared,
            "workers": self.workers,
        }

    def parts(self) -> dict[str, float]:
        """The parts that only the process itself can read, in bytes."""
        last = {"used": self.used.last, "retained": self.retained.last, "gpu": self.gpu.last}
        return {name: held for name, held in last.items() if held is not None}

    def make_due(self) -> None:
        """Have `read_parts` read all of them next."""
        self._due.clear()

    def read_parts(self) -> None:
        """Read the other parts that are due; a part that takes longer is read more rarely."""
        for read, share in (
            (self._read_status, _SHARE),
            (self._read_malloc, _MALLOC_SHARE),
            (self._read_gpu, _SHARE),
            (self._read_gpu_left, _SHARE),
            (self._read_workers, _WORKERS_SHARE),
            (self._read_free, _SHARE),
        ):
            began = self._clock()
            if began < self._due.get(read.__name__, 0.0):
                continue
            spent = own_time()
            with suppress(OSError, psutil.Error, RuntimeError, LookupError):
                read(began)
            cost = own_time() - spent
            pause = max(_PARTS_SECONDS, cost / share)
            if began - self._began < FIRST_SECONDS and cost <= _FIRST_COST_SECONDS:
                pause = min(pause, max(FIRST_PAUSE_SECONDS, cost / _FIRST_SHARE))
            if read == self._read_workers and self.processes.last is None:
                pause = max(pause, _CHILDLESS_SECONDS)
            self._due[read.__name__] = began + pause

    def _read_status(self, now: float) -> None:
        found = {name: 1024 * int(kilobytes) for name, kilobytes in _FIELD.findall(_STATUS.read_bytes())}
        for name, series in ((b"RssShmem", self.shared), (b"VmSize", self.virtual)):
            if name in found:
                series.add(now, found[name])
        if b"RssAnon" in found:
            self.private.add(now, found[b"RssAnon"] + found.get(b"RssShmem", 0))

    def _read_malloc(self, now: float) -> None:
        used, retained = malloc_bytes()
        for series, held in ((self.used, used), (self.retained, retained)):
            if held is not None:
                series.add(now, held)

    def _read_gpu(self, now: float) -> None:
        self._pools = [pools for read in POOLS.values() if (pools := read())]
        in_use: Counter[int] = Counter()
        for pools in self._pools:
            in_use.update({device: pool.in_use for device, pool in pools.items()})
        if in_use:
            self.gpu.add(now, in_use.total())
        for device, held in in_use.items():
            self.devices[device].add(now, held)

    def _read_gpu_left(self, _: float) -> None:
        left = Counter(free_bytes(self._nvml)) if self._pools else Counter()
        for pools in self._pools:
            left.update({device: pool.held - pool.in_use for device, pool in pools.items() if device in left})
        self.gpu_left = dict(left)

    def _read_free(self, now: float) -> None:
        ceiling = (self.resident.last or 0.0) + (self.workers.last or 0.0) + free_memory()
        if now >= self._ceiling_due:
            self._ceiling_due = now + _CEILING_SECONDS
            self._ceilings.append(ceiling)
        self.ceiling = min(ceiling, median(self._ceilings))

    def _read_workers(self, now: float) -> None:
        found = map(private_bytes, descendants(os.getpid(), _MOST_WORKERS))
        sizes = [size for size in found if size is not None]
        resident, count = sum(sizes), len(sizes)
        if count != (self.processes.last or 0):
            # A forked process shares its parent's pages, which count for both: what both can hold is more.
            self._ceilings.clear()
            self._ceiling_due = self._due[self._read_free.__name__] = float("-inf")
        if count or self.processes.last is not None:
            self.workers.add(now, resident)
            self.processes.add(now, count)


OWN, RETAINED, VIRTUAL = "own", "retained", "virtual"
_MOST = steps(1.6 * max(WINDOWS))
_JUDGED_SECONDS = 60.0
_LONGEST_GAP = 3 * STEP_SECONDS


class _Moment(NamedTuple):
    time: float
    cycles: int | None
    levels: Mapping[str, float | None]


class LevelHistory:
    """Levels in bytes, by name, every 30 seconds for more than an hour and a half.

    `own` is the private memory of the process. Growth of `retained` (freed memory that the C allocator keeps)
    and a rise without a rise of `virtual` memory are no leak of it. `retained` and each other level but
    `virtual` are also judged by themselves.
    """

    def __init__(self) -> None:
        self._moments: deque[_Moment] = deque(maxlen=_MOST)
        self._judged = (-_JUDGED_SECONDS, 0.0)
        self._leaks: dict[str, float] = {}

    def is_due(self, now: float) -> bool:
        """Whether 30 seconds have passed since the levels were last added."""
        return not self._moments or now - self._moments[-1].time >= STEP_SECONDS

    def add(self, now: float, levels: Mapping[str, float | None], cycles: int | None = None) -> None:
        """Add the levels of one moment in bytes; with the number of cycles that have ended, where known."""
        if self._moments and now - self._moments[-1].time > _LONGEST_GAP:
            self._moments.clear()  # the process was suspended: levels before that would distort its rate
        self._moments.append(_Moment(now, cycles, levels))

    def leaks(self, since: float) -> dict[str, float]:
        """Growth in bytes a minute of the levels that leak, counted from the time `since`."""
        if not self._moments:
            return {}
        latest = self._moments[-1].time
        if latest >= self._judged[0] + _JUDGED_SECONDS or since != self._judged[1]:
            self._judged, self._leaks = (latest, since), self._judge(since)
        return self._leaks

    def _judge(self, since: float) -> dict[str, float]:
        moments = [moment for moment in self._moments if moment.time >= since]
        if not moments:
            return {}
        known: dict[str, Values] = {
            name: [moment.levels.get(name) for moment in moments] for name in moments[-1].levels
        }
        # A program that reports no cycles has ended its start-up by then.
        cycles = [float(YOUNG_CYCLES if moment.cycles is None else moment.cycles) for moment in moments]
        process = Process(
            start=[since] * len(moments),
            time=[moment.time for moment in moments],
            cycles=[*cycles],
            virtual=known.get(VIRTUAL),
            retained=known.get(RETAINED),
        )
        components = {
            MEMORY if name == OWN else Component("gpu_memory", name): values
            for name, values in known.items()
            if name != VIRTUAL and (values[-1] or 0.0) > (values[0] or 0.0)
        }
        found: dict[str, float] = {}
        for component, judged in growth_of(process, components, len(moments) - HELD_EVALUATIONS).items():
            growth = judged.verdicts[-1]
            if growth is not None:
                found[OWN if component == MEMORY else component.name] = growth
        return found
