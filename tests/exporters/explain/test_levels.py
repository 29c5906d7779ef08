"""What the judge of all levels found, in an explanation."""

from __future__ import annotations

import pytest

from heapwatch.explain.findings import Explanation, Finding, message
from heapwatch.explain.levels import DETACH, Declared, with_judged_levels, with_past_bound
from heapwatch.explain.memory import ProcessMemory
from heapwatch.judge.component import MEMORY, Component
from heapwatch.judge.memory import MemoryGrowth
from heapwatch.judge.trainer import Leak, Sample, TrainerJudge

BODIES = Component("bodies", "dynamic")
REPLAY = Component("buffer", "replay")
WARM = Explanation("warm-up", 3600.0, 18.6e6, 0.0)
HEALTHY = Explanation("healthy", 100.0, 0.0, 0.0, detail="Memory use is 353 MB.")


def judge_of(*leaks: Leak, samples: int = 10, **levels: float) -> TrainerJudge:
    """A judge that has watched for a while and found these leaks."""
    judge = TrainerJudge()
    for at in range(samples):
        judge.observe(30.0 * at, Sample({Component("bodies", name): count for name, count in levels.items()}))
    judge.leaks = leaks
    return judge


def beside(
    explanation: Explanation, judge: TrainerJudge, declared: Declared | None = None, left: float = 8e9
) -> Explanation:
    memory = ProcessMemory()
    memory.ceiling = left
    return with_judged_levels(explanation, judge, MemoryGrowth(memory, 0.0, 600.0), declared or Declared())


def test_bodies_that_leak_are_a_leak_whatever_memory_does():
    leak = Leak(BODIES, "growth", 46.0, 2860.0)
    found = beside(WARM, judge_of(leak))
    assert found.verdict == "leak"
    assert found.leaks == (leak,)
    (finding,) = found.findings
    assert (finding.kind, finding.type, finding.is_leak) == ("level", "bodies dynamic", True)
    assert message(found).startswith(
        "Memory grows by 18.6 MB/min. bodies dynamic (+46 items/min, 2,860 now) leaks."
    )


def test_nothing_changes_without_a_leak():
    assert beside(HEALTHY, judge_of()) == HEALTHY
    assert beside(HEALTHY, judge_of(dynamic=100.0)) == HEALTHY


def test_counts_that_were_read_once_or_twice_are_no_comfort():
    assert beside(HEALTHY, judge_of(samples=2, dynamic=100.0)).verdict == "too early"
    assert beside(HEALTHY, judge_of(samples=4, dynamic=100.0)).verdict == "healthy"
    assert beside(HEALTHY, judge_of(samples=2)).verdict == "healthy", "nothing is counted"


@pytest.mark.parametrize(("samples", "left"), [(4, 5), (7, 3)])
def test_bodies_that_rise_fast_are_no_comfort_before_they_can_be_judged(samples, left):
    judge = TrainerJudge()
    for at in range(samples):
        judge.observe(30.0 * at, Sample({BODIES: 100.0 + 23 * at}))
    found = beside(HEALTHY, judge)
    assert found.verdict == "too early"
    reported = f"Whether it continues is known in {left} min. So far, bodies dynamic (+46"
    assert message(found).startswith(f"Too early to tell after 100 s. {reported}")
    assert not found.findings[0].is_leak
    assert found.leaks == ()


def test_a_container_past_its_bound_is_a_leak():
    (finding,) = beside(HEALTHY, judge_of(Leak(REPLAY, "bound", 0.0, 1300.0, 1000.0))).findings
    assert (finding.type, finding.items, finding.capacity_items) == ("buffer replay", 1300, 1000)


def test_past_its_bound_the_verdict_is_a_leak_before_there_is_an_alert():
    past = Leak(REPLAY, "bound", 0.0, 1300.0, 1000.0)
    found = with_past_bound(HEALTHY, [past])
    assert found.verdict == "leak"
    assert "buffer replay (1,300 now, bound 1,000) leaks" in message(found)
    assert found.leaks == ()
    judged = beside(HEALTHY, judge_of(past))
    assert with_past_bound(judged, [past]) == judged
    assert with_past_bound(HEALTHY, []) == HEALTHY


def test_memory_that_leaks_is_reported_once():
    judge = judge_of(Leak(MEMORY, "growth", 30e6, 2e9))
    (reported,) = beside(WARM, judge).findings
    assert (reported.type, reported.bytes_per_minute) == ("memory trainer", 30e6)
    named = Finding("container", "history", "list", 9, 9, 1.0, 30e6, 1.0, is_leak=True)
    known = Explanation("leak", 3600.0, 30e6, 1.0, (named,))
    assert beside(known, judge).findings == (named,)


def test_even_leaks_with_a_name_are_leaks_of_the_memory_that_they_are_in():
    named = Finding("container", "history", "list", 9, 9, 1.0, 30e6, 0.5, is_leak=True, steady=True)
    other = Finding("type", None, "Graph", 9, 9, 1.0, 12e6, 0.2, is_leak=True, steady=True)
    cache = Finding("container", "cache", "dict", 9, 9, 1.0, 10e6, 0.2, is_leak=True)
    found = beside(Explanation("leak", 3600.0, 50e6, 1.0, (named, other, cache)), judge_of())
    assert [(leak.component, leak.per_minute) for leak in found.leaks] == [(MEMORY, 42e6)]
    assert beside(Explanation("leak", 3600.0, 50e6, 1.0, (cache,)), judge_of()).leaks == ()


HELD = Leak(REPLAY, "graphs", 0.0, 900.0, 1000.0)
PATHS = Declared({"replay": "agent.memory.buffer"})


def test_a_buffer_that_holds_graphs_is_a_leak_with_its_remedy():
    found = beside(HEALTHY, judge_of(HELD), PATHS)
    assert found.verdict == "leak"
    (finding,) = found.findings
    assert (finding.kind, finding.path) == ("buffer", "agent.memory.buffer")
    assert (finding.remedy, finding.is_leak) == (DETACH, True)
    assert "`agent.memory.buffer` (900 tensors with their autograd graphs" in message(found)


def test_what_was_found_of_the_same_buffer_becomes_the_leak():
    filling = Finding("buffer", "root.agent.memory.buffer", "deque", 800, 2, 5.0, 6.0, 0.5, 1000)
    other = Finding("container", "root.losses", "list", 1, 2, 3.0, 4e6, 0.5)
    found = beside(Explanation("filling", 300.0, 9.0, 1.0, (other, filling)), judge_of(HELD), PATHS)
    assert [finding.path for finding in found.findings] == ["root.agent.memory.buffer", "root.losses"]
    assert found.findings[0].remedy == DETACH
    assert found.findings[0].bytes_per_minute == 6.0


def test_a_path_that_only_ends_alike_is_another_buffer():
    other = Finding("buffer", "agent.replay_buffer", "deque", 800, 2, 5.0, 6.0, 0.5, 1000)
    held = HELD._replace(component=Component("buffer", "buffer"))
    found = beside(Explanation("filling", 300.0, 9.0, 1.0, (other,)), judge_of(held))
    assert not next(one for one in found.findings if one.path == "agent.replay_buffer").is_leak


def test_a_declared_buffer_that_does_not_fit_is_said_at_once():
    crowded = beside(HEALTHY, judge_of(), Declared(to_fill={"replay": 9e9, "small": 1e6}))
    assert crowded.verdict == "will not fit"
    assert "`replay` (a buffer with 9 GB to fill" in message(crowded)
    assert beside(HEALTHY, judge_of(), Declared(to_fill={"replay": 7e9})).verdict == "healthy"
