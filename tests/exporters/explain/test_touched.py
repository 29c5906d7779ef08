"""Arrays of zeros that the program writes to for the first time."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import pytest

from heapwatch.explain.attribution import explain
from heapwatch.explain.candidate import Candidate
from heapwatch.explain.findings import message
from heapwatch.explain.memory import ProcessMemory
from heapwatch.explain.touched import TouchedArrays
from heapwatch.judge.memory import MemoryGrowth
from tests.support.walking import inventory_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel shows its pages on Linux only")

MB = 1_000_000
NUMBERS = 10_000_000  # 80 MB


class Explorer:
    def __init__(self, counts: Any, *others: Any) -> None:
        self.counts, self.others = counts, others


def touched(explorer: Explorer) -> TouchedArrays:
    inventory = inventory_of(explorer, "explorer")
    inventory.lengths.read(1.0)
    return TouchedArrays(inventory)


def test_the_pages_that_a_program_writes_to_are_counted():
    counts = np.zeros(NUMBERS)
    explorer = Explorer(counts)
    found = touched(explorer)
    found.read(0.0)
    assert found.risen == 0
    counts[: NUMBERS // 2] = 1
    found.read(1.0)
    (known,) = found.known.values()
    assert known.path == "explorer.counts"
    assert re.fullmatch(r"ndarray, 5\d% touched", known.type_name)
    assert found.risen == pytest.approx(40 * MB, rel=0.2)
    assert known.bytes_each == pytest.approx(4096, rel=0.01)


def test_reading_zeros_takes_no_memory_and_a_view_or_a_small_array_is_left_out():
    counts = np.zeros(NUMBERS)
    assert counts.sum() == 0
    explorer = Explorer(counts, counts[10:], np.zeros(1_000_000))
    found = touched(explorer)
    found.read(0.0)
    (known,) = found.known.values()
    assert known.items.last < 0.1 * known.capacity


def test_another_array_of_the_same_name_begins_anew():
    held = Explorer(np.zeros(NUMBERS))
    found = touched(held)
    found.read(0.0)
    held.counts = np.ones(NUMBERS // 2)
    found.read(1.0)
    assert len(found.known) == 1
    assert found.risen == 0


def test_it_explains_the_growth_and_says_what_it_will_hold():
    memory, counts = ProcessMemory(clock=lambda: 0.0), np.zeros(NUMBERS)
    memory.limit = 20_000 * MB
    explorer = Explorer(counts)
    found = touched(explorer)
    for at in range(200):
        counts[: at * NUMBERS // 400] = 1
        found.read(at)
        for series in (memory.resident, memory.private):
            series.add(at, 100 * MB + at * 80 * MB / 400)
    (known,) = found.known.values()
    candidate = Candidate(known, known.items.growth(50.0), capacity=known.capacity)
    explanation = explain(MemoryGrowth(memory, 0.0, 199.0), [candidate])
    assert explanation.verdict == "filling"
    said = message(explanation)
    assert re.search(r"`explorer.counts` \(ndarray, 5\d% touched\) is filling: [\d,]+ of 19,531 pages;", said)
    assert "it will hold 80 MB when full" in said
