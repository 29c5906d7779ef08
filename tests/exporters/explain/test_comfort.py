"""Nothing comforting is said of memory that rises, whatever its course."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from heapwatch.judge.memory import MemoryGrowth
from tests.support.judged_memory import JudgedMemory, judged

COMFORT = ("healthy", "warm-up", "filling")
START = 60  # seconds, after which loading modules and the first steps no longer count
RECENT = 120  # seconds in which it rises


@settings(max_examples=200, deadline=None)
@given(
    size=st.sampled_from([100e6, 2e9, 40e9]),
    before=st.lists(st.floats(-0.05, 0.05), min_size=4, max_size=40),
    rise=st.floats(0.03, 0.3),
    noise=st.lists(st.floats(0, 0.002), min_size=60, max_size=60),
)
def test_memory_that_rises_to_a_new_high_is_no_comfort(size, before, rise, noise):
    """A random course, and then two minutes of 3 % of the process a minute or more, which is material."""
    memory = JudgedMemory(clock=lambda: 0.0)
    memory.limit = int(1e13)
    level, highest, now = size, size, 0
    for step in before:
        for _ in range(3):
            memory.private.add(now, level)
            memory.resident.add(now, level)
            now += 5
        level = max(0.5 * size, level * (1 + step))
        highest = max(highest, level)
    now = max(now, START)
    for at in range(0, RECENT + 1, 5):
        level = highest * (1 + rise * at / 60 + noise[at // 5])
        memory.private.add(now + at, level)
        memory.resident.add(now + at, level)
    found = judged(now + RECENT, memory)
    assert found.verdict not in COMFORT, found


@settings(max_examples=100, deadline=None)
@given(seconds=st.integers(1, 60), rise=st.floats(0.0, 0.3))
def test_nor_of_a_process_that_was_just_entered(seconds, rise):
    """Whatever it does: a visit of a few seconds has seen nothing."""
    memory = JudgedMemory(clock=lambda: 0.0)
    for at in range(seconds):
        memory.private.add(at, 1e9 * (1 + rise * at / 60))
        memory.resident.add(at, 1e9 * (1 + rise * at / 60))
    verdict = judged(seconds, memory).verdict
    assert seconds >= 40 or verdict == "too early"
    assert rise < 0.03 or verdict not in COMFORT


def test_what_stands_still_is_healthy():
    """The property above would hold of a judge that says nothing."""
    memory = JudgedMemory(clock=lambda: 0.0)
    for at in range(0, 300, 5):
        memory.private.add(at, 1e9)
        memory.resident.add(at, 1e9)
    assert MemoryGrowth(memory, 0.0, 300).are_measured
    assert judged(300, memory).verdict == "healthy"
