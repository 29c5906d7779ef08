"""Levels that leak by the rules, in an explanation."""

import math
from dataclasses import replace

import pytest
from heapwatch.judge.judge import LiveVerdicts
from prometheus_client.parser import text_string_to_metric_families as parse

from heapwatch.collectors.buffers import HeldGraphs
from heapwatch.collectors.readings import Readings
from heapwatch.explain.findings import Explanation, Finding, message
from heapwatch.explain.levels import DETACH, LeakingLevels, with_graphs

WARM = Explanation("warm-up", 3600.0, 18.6e6, 0.0)


def live(exposed, minutes=60):
    """Series of an hour; `exposed` is given the minute."""
    seen = LiveVerdicts()
    for look in range(round(2 * minutes) + 1):
        progress = f'process_start_time_seconds 1\ntrainer_progress_total{{unit="episode"}} {look}\n'
        seen.observe(30.0 * look, Readings(parse(progress + exposed(look / 2))))
    return seen


def beside(exposed, explanation=WARM, minutes=60):
    """The explanation after so many minutes of these series."""
    return LeakingLevels(live(exposed, minutes).verdicts).beside(explanation)


def bodies(minute):
    return f'trainer_bodies{{type="dynamic"}} {100 + round(46 * minute)}\ntrainer_bodies{{type="static"}} 7\n'


def test_bodies_that_leak_are_a_leak_whatever_memory_does():
    found = beside(bodies)
    assert found.verdict == "leak"
    (finding,) = found.findings
    assert (finding.kind, finding.type, finding.is_leak) == ("level", "bodies dynamic", True)
    assert finding.items_per_minute == pytest.approx(46, rel=0.1)
    assert message(found).startswith(
        "Memory grows by 18.6 MB/min. bodies dynamic (+46 items/min, 2,860 now) leaks."
    )
    assert "No leak" not in message(found)


HEALTHY = Explanation("healthy", 100.0, 0.0, 0.0, detail="Memory use is 353 MB.")


@pytest.mark.parametrize("minutes", [1.5, 3])
def test_bodies_that_rise_fast_are_no_comfort_before_they_can_be_judged(minutes):
    found = beside(bodies, HEALTHY, minutes)
    assert found.verdict == "too early"
    left = math.ceil(6 - minutes)
    reported = f"Whether it continues is known in {left} min. So far, bodies dynamic (+46"
    assert message(found).startswith(f"Too early to tell after 100 s. {reported}")
    assert not found.findings[0].is_leak


def test_what_the_rules_have_not_decided_in_time_is_said_to_be_open():
    undecided = live(bodies, 7).verdicts()
    found = LeakingLevels(lambda: replace(undecided, leaks={})).beside(HEALTHY)
    assert "It has risen for 7 min, and the leak rules are not certain yet." in message(found)


@pytest.mark.parametrize(
    "count",
    [
        lambda minute: 100,
        lambda minute: 100 + round(minute / 3),  # slower than one in a hundred a minute
        lambda minute: 150 + round(40 * (minute % 7)),  # each episode begins anew; it has been higher
        lambda minute: 150 + 2 * (round(minute) % 3),
        lambda minute: 300 - round(20 * minute),
    ],
    ids=["level", "slowly", "sawtooth", "noise", "falling"],
)
def test_a_count_that_has_been_higher_or_rises_slowly_changes_nothing(count):
    assert (
        beside(lambda minute: f'trainer_bodies{{type="dynamic"}} {count(minute)}\n', HEALTHY, 12) is HEALTHY
    )


def deaths(items):
    return f'trainer_event_list_items{{list="death"}} {items}\n' + (
        'trainer_event_list_capacity_items{list="death"} 1000\n'
    )


def test_a_list_that_fills_its_bound_changes_nothing_and_one_past_it_is_a_leak():
    assert beside(lambda minute: deaths(100 * minute), HEALTHY, 4) is HEALTHY
    (finding,) = beside(lambda _: deaths(1300)).findings
    assert (finding.type, finding.items, finding.capacity_items) == ("events death", 1300, 1000)


def memory(minute):
    return f'trainer_process_resident_memory_bytes{{role="trainer"}} {1e9 + 30e6 * minute}\n'


def test_memory_that_leaks_by_the_rules_is_reported_once():
    leaking = LeakingLevels(live(memory).verdicts)
    (reported,) = leaking.beside(WARM).findings
    assert (reported.type, reported.bytes_per_minute) == ("memory trainer", pytest.approx(30e6, rel=0.1))
    named = Finding("container", "history", "list", 9, 9, 1.0, 30e6, 1.0, is_leak=True)
    known = Explanation("leak", 3600.0, 30e6, 1.0, (named,))
    assert leaking.beside(known) is known


def test_how_bodies_rose_before_a_cleanup_says_nothing_after_it():
    now = [0.0]
    leaking = LeakingLevels(live(bodies, 3).verdicts, lambda: now[0])
    assert leaking.beside(HEALTHY).verdict == "too early"
    leaking.cleaned_up()
    now[0] = 59.0  # the rules have a level after the cleanup by then
    assert leaking.beside(HEALTHY) is HEALTHY
    now[0] = 61.0
    assert leaking.beside(HEALTHY).verdict == "too early"


def test_a_leak_is_found_however_often_the_trainer_cleans_up():
    now = [0.0]
    leaking = LeakingLevels(live(bodies).verdicts, lambda: now[0])
    leaking.cleaned_up()
    assert leaking.beside(HEALTHY).verdict == "leak"


HELD = HeldGraphs("replay", "agent.memory.buffer", 900, 1000, 1000, 240e6)


def test_a_buffer_that_holds_graphs_is_a_leak_with_its_remedy():
    found = with_graphs(Explanation("healthy", 300.0, 0.0, 1.0), [HELD])
    assert found.verdict == "leak"
    (finding,) = found.findings
    assert (finding.kind, finding.path) == ("buffer", "agent.memory.buffer")
    assert (finding.remedy, finding.is_leak) == (DETACH, True)
    assert "`agent.memory.buffer` (900 tensors with their autograd graphs, 240 kB each" in message(found)
    assert "detach().cpu()" in message(found)


def test_a_buffer_that_holds_graphs_by_the_rules_is_a_leak_once():
    seen = LiveVerdicts()
    buffer = 'trainer_buffer_items{buffer="replay"} 20\ntrainer_buffer_graph_tensors{buffer="replay"} 20\n'
    for look in range(30):
        seen.observe(30.0 * look, Readings(parse(f"process_start_time_seconds 1\n{buffer}")))
    found = LeakingLevels(seen.verdicts).beside(HEALTHY)
    assert [(one.path, one.remedy, one.is_leak) for one in found.findings] == [("replay", DETACH, True)]
    assert len(with_graphs(found, [HELD]).findings) == 1


def test_what_was_found_of_the_same_buffer_becomes_the_leak():
    filling = Finding("buffer", "root.agent.memory.buffer", "deque", 800, 2, 5.0, 6.0, 0.5, 1000)
    other = Finding("container", "root.losses", "list", 1, 2, 3.0, 4e6, 0.5)
    found = with_graphs(Explanation("filling", 300.0, 9.0, 1.0, (other, filling)), [HELD])
    assert [finding.path for finding in found.findings] == ["root.agent.memory.buffer", "root.losses"]
    assert found.findings[0].remedy == DETACH
    assert found.findings[0].bytes_per_minute == 6.0


def test_without_such_a_buffer_nothing_changes_and_a_path_that_only_ends_alike_is_another_buffer():
    assert with_graphs(HEALTHY, []) is HEALTHY
    other = Finding("buffer", "agent.replay_buffer", "deque", 800, 2, 5.0, 6.0, 0.5, 1000)
    found = with_graphs(
        Explanation("filling", 300.0, 9.0, 1.0, (other,)), [replace(HELD, name="buffer", path="buffer")]
    )
    assert not next(one for one in found.findings if one.path == "agent.replay_buffer").is_leak
