from __future__ import annotations

import logging
from dataclasses import replace

from heapwatch.analysis.verdict import Word
from heapwatch.explain.findings import Explanation, Finding
from heapwatch.explain.log_limit import LogLimit

LEAK = Finding("container", "trainer.history", "list", 10, 10, 1.0, 1.0, 1.0, is_leak=True)
OTHER = replace(LEAK, path="trainer.other")


def explanation(verdict: Word, *findings: Finding) -> Explanation:
    return Explanation(verdict, 100.0, 1.0, 1.0, findings)


def logged(limit: LogLimit, found: Explanation, seconds: range) -> list[int]:
    return [now for now in seconds if limit.line(found, now)]


def test_a_verdict_is_said_once_it_has_held_for_a_minute_and_once_an_hour() -> None:
    assert logged(LogLimit(), explanation("leak", LEAK), range(0, 7000, 5)) == [60, 3660]


def test_verdicts_that_change_all_the_time_are_not_said() -> None:
    limit = LogLimit()
    found = [explanation("warm-up"), explanation("leak", LEAK), explanation("healthy")]
    assert not any(limit.line(found[now // 5 % 3], now) for now in range(0, 3600, 5))


def test_two_leaks_of_the_same_pace_are_each_said_once() -> None:
    limit = LogLimit()
    both = [explanation("leak", LEAK, OTHER), explanation("leak", OTHER, LEAK)]
    assert sum(limit.line(both[now // 5 % 2], now) is not None for now in range(0, 3600, 5)) == 2


def test_that_it_is_too_early_is_not_said() -> None:
    assert not logged(LogLimit(), explanation("too early"), range(0, 3600, 5))


def test_that_nothing_leaks_is_not_said() -> None:
    assert not logged(LogLimit(), explanation("healthy"), range(0, 7200, 5))
    assert not logged(LogLimit(), explanation("warm-up"), range(0, 7200, 5))


def test_a_verdict_that_proves_wrong_is_taken_back_once() -> None:
    limit = LogLimit()
    assert logged(limit, explanation("leak", LEAK), range(0, 300, 5)) == [60]
    lines = [limit.line(explanation("warm-up"), now) for now in range(300, 7200, 5)]
    (taken_back,) = filter(None, lines)
    assert taken_back.level == logging.WARNING
    assert taken_back.text.startswith("warm-up: what was said before is taken back. No leak.")


def test_what_someone_has_to_act_on_is_a_warning() -> None:
    full = Finding("buffer", "replay", "deque", 10, 10, 1.0, 1.0, 1.0, 1000, fits=False)
    lines = []
    for found in (explanation("leak", LEAK), explanation("will not fit", full), explanation("growing", LEAK)):
        limit = LogLimit()
        lines.append(next(line for now in (0, 60) if (line := limit.line(found, now))))
    assert [line.level for line in lines] == [logging.WARNING, logging.WARNING, logging.INFO]
    assert [line.text.partition(":")[0] for line in lines] == ["leak", "will not fit", "growing"]
