from __future__ import annotations

from dataclasses import replace

from heapwatch.explain.findings import Explanation, Finding, Verdict
from heapwatch.explain.log_limit import LogLimit

LEAK = Finding("container", "trainer.history", "list", 10, 10, 1.0, 1.0, 1.0, is_leak=True)
OTHER = replace(LEAK, path="trainer.other")


def explanation(verdict: Verdict, *findings: Finding) -> Explanation:
    return Explanation(verdict, 100.0, 1.0, 1.0, findings)


def logged(limit: LogLimit, found: Explanation, seconds: range) -> list[int]:
    return [now for now in seconds if limit.allows(found, now)]


def test_a_verdict_is_said_once_it_has_held_for_a_minute_and_once_an_hour() -> None:
    assert logged(LogLimit(), explanation("leak", LEAK), range(0, 7000, 5)) == [60, 3660]


def test_verdicts_that_change_all_the_time_are_not_said() -> None:
    limit = LogLimit()
    found = [explanation("warm-up"), explanation("leak", LEAK), explanation("healthy")]
    assert not any(limit.allows(found[now // 5 % 3], now) for now in range(0, 3600, 5))


def test_two_leaks_of_the_same_pace_are_each_said_once() -> None:
    limit = LogLimit()
    both = [explanation("leak", LEAK, OTHER), explanation("leak", OTHER, LEAK)]
    assert sum(limit.allows(both[now // 5 % 2], now) for now in range(0, 3600, 5)) == 2


def test_that_it_is_too_early_is_not_said() -> None:
    assert not logged(LogLimit(), explanation("too early"), range(0, 3600, 5))
