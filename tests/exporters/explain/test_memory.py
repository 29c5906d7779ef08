"""How often the parts of a process's memory are read, by what a reading costs."""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from heapwatch.explain import memory as subject
from heapwatch.explain.memory import ProcessMemory
from heapwatch.judge.level import LevelSeries, is_steady
from heapwatch.judge.memory import MemoryGrowth
from heapwatch.measure.process.procfs import MemoryParts

MB = 1e6


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Levels of a process that grows by a megabyte a second, watched for so long; a reading costs the same.

    Returns them with the CPU seconds that reading took.
    """

    def watch(seconds: int, cost: float) -> tuple[MemoryGrowth, float]:
        at = spent = 0.0

        def pay(now: float) -> None:
            nonlocal spent
            spent += cost

        monkeypatch.setattr(subject, "own_time", lambda: spent)
        memory = ProcessMemory(clock=lambda: at)

        def status(now: float) -> None:
            pay(now)
            memory.private.add(now, 100 * MB + now * MB)

        def workers(now: float) -> None:
            pay(now)
            memory.workers.add(now, 50 * MB + now * MB)
            memory.processes.add(now, 4)

        reads = {"status": status, "workers": workers, "malloc": pay, "gpu": pay, "prefixes": pay}
        reads["free"] = lambda now: None
        for name, read in reads.items():
            one = partial(read)
            one.__name__ = f"_read_{name}"  # type: ignore[attr-defined]
            monkeypatch.setattr(memory, one.__name__, one)  # type: ignore[attr-defined]
        while at < seconds:
            memory.read_parts()
            at += 1.0
        return MemoryGrowth(memory, 0.0, at), spent

    return watch


@pytest.mark.parametrize("cost", [0.0001, 0.001, 0.004, 0.019])
def test_a_run_of_a_minute_and_a_half_has_a_pace_of_growth(watched, cost):
    for seconds in (85, 90):
        levels, _ = watched(seconds, cost)
        assert 60 * levels.own.per_second == pytest.approx(60 * MB, rel=0.05)
        assert levels.per_minute == pytest.approx(120 * MB, rel=0.05)


@pytest.mark.parametrize(("cost", "share"), [(0.001, 0.0007), (0.02, 0.0013), (0.2, 0.0014)])
def test_in_an_hour_reading_takes_its_share(watched, cost, share):
    _, spent = watched(3600, cost)
    assert spent / 3600 <= share


def test_what_other_programs_free_counts_once_it_has_lasted(monkeypatch):
    """At constant growth the time that is left must not follow them up and down; less counts at once."""
    frees = iter([20_000 * MB] * 30 + [40_000 * MB] * 17 + [10_000 * MB])
    monkeypatch.setattr(subject, "free_memory", lambda: next(frees))
    memory = ProcessMemory()
    ceilings = []
    for minute in range(48):
        memory._read_free(60.0 * minute)
        ceilings.append(memory.ceiling)
    assert ceilings[29:44] == [20_000 * MB] * 15
    assert ceilings[46:] == [40_000 * MB, 10_000 * MB]


def test_pages_that_forked_workers_share_take_nothing_of_what_is_left(monkeypatch):
    """Ten workers that a process of 2.4 GB forks seem to hold 24 GB at once, of a machine of 16 GB."""
    held = [0]
    monkeypatch.setattr(subject, "free_memory", lambda: 10_000 * MB)
    monkeypatch.setattr(subject, "descendants", lambda *_: range(1, 1 + held[0]))
    monkeypatch.setattr(subject, "memory_parts", lambda _: MemoryParts(9_000 * MB, 2_400 * MB, 0))
    now = [0.0]
    memory = ProcessMemory(clock=lambda: now[0])
    memory.limit = 16_000 * MB
    for now[0] in range(0, 1200, 10):
        held[0] = 10 if now[0] >= 600 else 0
        memory.read_resident()
        memory.read_parts()
        # The resident memory is that of the test itself, which varies by some pages.
        assert MemoryGrowth(memory, 0.0, now[0]).left == pytest.approx(10_000 * MB, abs=MB), now[0]
    assert memory.workers.last == 24_000 * MB


@pytest.mark.parametrize(
    ("is_worker", "is_own", "store", "shared"),
    [
        (False, False, None, 300),
        (False, True, 700, 700),
        (False, True, 100, 300),
        (False, False, 700, 500),
        (False, False, 400, 400),
        (True, False, 700, 500),
        (True, False, None, 0),
    ],
)
def test_of_the_object_store_counts_once_what_a_process_stands_for(
    monkeypatch, is_worker, is_own, store, shared
):
    """All of the store that it has started; of another one what its references keep, 500 kB."""
    parts = MemoryParts(1024 * 9000, 1024 * 2000, 1024 * 300)
    monkeypatch.setattr(subject, "memory_parts", lambda _: parts)
    monkeypatch.setattr(subject, "is_ray_worker", lambda pid: is_worker)
    monkeypatch.setitem(sys.modules, "ray", ModuleType("ray"))
    memory = ProcessMemory()
    memory.referenced = 1024 * 500
    monkeypatch.setattr(memory._store, "read", lambda: store and 1024 * store)
    memory._store.is_own = is_own
    memory._read_status(1.0)
    assert memory.shared.last == 1024 * shared
    assert memory.private.last == 1024 * (2000 + shared)


def test_a_rise_that_slows_with_the_machine_is_even_in_granted_time(monkeypatch, tmp_path):
    """After 150 seconds others take half of the main thread's time."""
    scheduler, at = tmp_path / "schedstat", 0.0
    monkeypatch.setattr(subject, "_SCHEDULER", scheduler)
    monkeypatch.setattr(subject, "own_time", lambda: 0.0)  # what costs more is read more rarely
    memory, kept = ProcessMemory(clock=lambda: at), LevelSeries()
    for second in range(300):
        at, waited = second, max(0, second - 150) / 2
        scheduler.write_text(f"{round((second - waited) * 1e9)} {round(waited * 1e9)} 17\n")
        memory.read_parts()
        kept.add(at, 7 * (second - waited))
    assert not is_steady(kept, (memory.steps, memory.cycles), 0.0)
    assert is_steady(kept, memory.progress, 0.0)


def test_waiting_for_a_cpu_is_read_where_the_kernel_counts_it():
    memory = ProcessMemory()
    memory.read_parts()
    assert (memory.granted.last is not None) is subject._SCHEDULER.exists()
