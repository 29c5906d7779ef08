"""All levels of now, for the judge."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from heapwatch.collectors.readings import Readings
from heapwatch.explain.inventory import Inventory
from heapwatch.explain.level_reader import LevelReader
from heapwatch.explain.memory import ProcessMemory
from heapwatch.explain.program import Program
from heapwatch.explain.touched import TouchedArrays
from heapwatch.judge.component import Component
from heapwatch.judge.trainer import Sample


@pytest.fixture
def memory() -> ProcessMemory:
    return ProcessMemory(clock=lambda: 0.0)


def reader(memory: ProcessMemory, readings: Readings | None) -> LevelReader:
    program = Program(readings=lambda: readings)
    return LevelReader(memory, TouchedArrays(Inventory()), program, lambda: 0.0)


@pytest.mark.parametrize(("counted", "steps"), [(0, None), (7, 7)])
def test_a_program_that_has_counted_no_step_is_one_that_counts_none(memory, counted, steps):
    """It may leak in C code for as long as it runs, and would be judged after 24 minutes only."""
    text = f'trainer_progress_total{{unit="step"}} {counted}\n'
    assert reader(memory, Readings(text_string_to_metric_families(text))).read().steps == steps


def test_memory_is_not_judged_while_the_bytes_in_buffers_cannot_be_read(memory):
    """Without them a buffer of gigabytes would be a step of the level."""
    memory.read_parts()
    assert reader(memory, None).read() == Sample()


def test_entities_that_a_trainer_counts_are_known_over_time(memory, monkeypatch):
    robots, world = Component("entities", "robots"), Component("bodies", "all")
    sample = Sample({robots: 7.0, world: 30.0, Component("objects", "Tensor"): 4.0})
    monkeypatch.setattr(Readings, "sample", lambda *_: sample)
    reader(memory, Readings(())).read()
    assert {component: count.last for component, count in memory.entities.items()} == {
        robots: 7.0,
        world: 30.0,
    }
