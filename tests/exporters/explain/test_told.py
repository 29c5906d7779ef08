from __future__ import annotations

from dataclasses import replace

from heapwatch.explain.findings import Explanation, Finding, Verdict
from heapwatch.explain.told import Told

LEAK = Finding("container", "trainer.history", "list", 10, 10, 1.0, 1.0, 1.0, is_leak=True)
OTHER = replace(LEAK, path="trainer.other")


def explanation(verdict: Verdict, *findings: Finding) -> Explanation:
    return Explanation(verdict, 100.0, 1.0, 1.0, findings)


def said(told: Told, found: Explanation, seconds: range) -> list[int]:
    return [now for now in seconds if told.is_news(found, now)]


def test_a_verdict_is_said_once_it_has_held_for_a_minute_and_once_an_hour() -> None:
    assert said(Told(), explanation("leak", LEAK), range(0, 7000, 5)) == [60, 3660]


def test_verdicts_that_change_all_the_time_are_not_said() -> None:
    told = Told()
    found = [explanation("warm-up"), explanation("leak", LEAK), explanation("healthy")]
    assert not any(told.is_news(found[now // 5 % 3], now) for now in range(0, 3600, 5))


def test_two_leaks_of_the_same_pace_are_each_said_once() -> None:
    told = Told()
    both = [explanation("leak", LEAK, OTHER), explanation("leak", OTHER, LEAK)]
    assert sum(told.is_news(both[now // 5 % 2], now) for now in range(0, 3600, 5)) == 2


def test_that_it_is_too_early_is_not_said() -> None:
    assert not said(Told(), explanation("too early"), range(0, 3600, 5))
