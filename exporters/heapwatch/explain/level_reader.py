"""All levels for the judge: memory as the explainer reads it, the others as the trainer exposes them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from heapwatch.explain.levels import Declared
from heapwatch.explain.memory import ProcessMemory
from heapwatch.explain.program import Program
from heapwatch.explain.touched import TouchedArrays
from heapwatch.judge.component import ENTITIES, MEMORY, WORKERS, Component
from heapwatch.judge.trainer import Sample


class LevelReader:
    """Reads samples of all levels.

    Args:
        memory: the memory of the process, as it was read last.
        touched: arrays whose pages become resident, which is no growth of memory.
        program: has the levels that the trainer exposes.
        clock: monotonic seconds.

    Attributes:
        declared: what the trainer had declared of its buffers at the last sample.

    """

    def __init__(
        self, memory: ProcessMemory, touched: TouchedArrays, program: Program, clock: Callable[[], float]
    ) -> None:
        self.declared = Declared()
        self._memory = memory
        self._touched = touched
        self._program = program
        self._clock = clock

    def read(self) -> Sample:
        """All levels of now.

        It is empty if the trainer's cannot be read: without the bytes of buffers memory would seem to jump.
        """
        readings, memory = self._program.readings(), self._memory
        if readings is None:
            return Sample()
        sample = readings.sample(time.time())
        self.declared = Declared(self._program.paths(), sample.to_fill)
        levels = dict(sample.levels)
        for component, count in levels.items():
            if component.resource in ENTITIES:
                memory.entities[component].add(self._clock(), count)
        own = memory.own.last
        if own is not None:
            levels[MEMORY] = own - (sample.buffer_bytes or 0.0) - self._touched.risen
        if memory.workers.last is not None:
            levels[WORKERS] = memory.workers.last
        for device, level in memory.devices.items():
            levels.setdefault(Component("gpu_memory", str(device)), level.last or 0.0)
        return replace(
            sample,
            levels=levels,
            cycles=memory.cycles.last if sample.cycles is None else sample.cycles,
            # A program that has counted no step may never count any.
            steps=sample.steps or memory.steps.last or None,
            retained=memory.retained.last,
            virtual=memory.virtual.last,
        )
