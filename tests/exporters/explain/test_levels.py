"""Levels that leak by the rules, in an explanation."""

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from heapwatch.analysis.live import LiveVerdicts
from heapwatch.analysis.readings import Readings
from heapwatch.explain.findings import Explanation, Finding, message
from heapwatch.explain.levels import LeakingLevels

WARM = Explanation("warm-up", 3600.0, 18.6e6, 0.0)


def live(exposed, minutes=60):
    """Series of an hour; `exposed` is given the minute."""
    seen = LiveVerdicts()
    for look in range(2 * minutes + 1):
        progress = f'process_start_time_seconds 1\ntrainer_progress_total{{unit="episode"}} {look}\n'
        seen.observe(30.0 * look, Readings(parse(progress + exposed(look / 2))))
    return seen


def bodies(minute):
    return f'trainer_bodies{{type="dynamic"}} {100 + round(46 * minute)}\ntrainer_bodies{{type="static"}} 7\n'


def test_bodies_that_leak_are_a_leak_whatever_memory_does():
    found = LeakingLevels(live(bodies).verdicts).beside(WARM)
    assert found.verdict == "leak"
    (finding,) = found.findings
    assert (finding.kind, finding.type, finding.is_leak) == ("level", "bodies dynamic", True)
    assert finding.items_per_minute == pytest.approx(46, rel=0.1)
    assert message(found).startswith(
        "Memory grows by 18.6 MB/min. bodies dynamic (+46 items/min, 2,860 now) leaks."
    )
    assert "No leak" not in message(found)


def test_what_does_not_leak_changes_nothing():
    still = live(lambda _: 'trainer_bodies{type="dynamic"} 100\n')
    assert LeakingLevels(still.verdicts).beside(WARM) is WARM


def test_a_list_past_its_bound_is_a_leak_with_its_bound():
    death = 'list="death"'
    capacity = f"trainer_event_list_capacity_items{{{death}}} 1000\n"
    longer = live(lambda _: f"trainer_event_list_items{{{death}}} 1300\n{capacity}")
    (finding,) = LeakingLevels(longer.verdicts).beside(WARM).findings
    assert (finding.type, finding.items, finding.capacity_items) == ("events death", 1300, 1000)


def memory(minute):
    return f'trainer_process_resident_memory_bytes{{role="trainer"}} {1e9 + 30e6 * minute}\n'


def test_memory_that_leaks_by_the_rules_is_told_once():
    leaking = LeakingLevels(live(memory).verdicts)
    (told,) = leaking.beside(WARM).findings
    assert (told.type, told.bytes_per_minute) == ("memory trainer", pytest.approx(30e6, rel=0.1))
    named = Finding("container", "history", "list", 9, 9, 1.0, 30e6, 1.0, is_leak=True)
    known = Explanation("leak", 3600.0, 30e6, 1.0, (named,))
    assert leaking.beside(known) is known


def test_the_rules_judge_once_a_minute():
    now, calls = [0.0], []
    seen = live(bodies)

    def judge():
        calls.append(now[0])
        return seen.verdicts()

    leaking = LeakingLevels(judge, lambda: now[0])
    for second in range(0, 130, 5):
        now[0] = float(second)
        leaking.beside(WARM)
    assert calls == [0.0, 60.0, 120.0]
