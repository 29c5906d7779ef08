"""The verdict of a report is the trainer's, from its first line to its last."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heapwatch.explain.findings import Explanation, Finding
from heapwatch.judge.component import MEMORY, Component
from heapwatch.judge.trainer import Leak
from heapwatch.judge.verdict import WORDS
from heapwatch.recording.points import Point, Run
from heapwatch.report.document import as_text
from heapwatch.report.findings import analyse

RATE = 267e6
SHOUTED = re.compile(r"(?m)^Verdict +(.+)$")


def explained(verdict, component=MEMORY):
    """What a trainer says of itself; a leak is one of `Rollout.registry`."""
    found = Finding(
        "container", "Rollout.registry", "list of bytearray", 600, 10**8, 588.0, RATE, 1.0, is_leak=True
    )
    leaks = verdict == "leak"
    return Explanation(
        verdict,
        75.0,
        RATE if leaks else 0.0,
        1.0,
        (found,) if leaks else (),
        leaks=(Leak(component, "growth", RATE, 0.0),) if leaks else (),
    ).as_json()


def sampled(levels, explanation, *, every=15.0, **about):
    points = [
        Point(1e9 + every * n, "sample" if n else "start", level, **about) for n, level in enumerate(levels)
    ]
    return Run("walker", tuple(points), explanation=explanation)


def of_75_seconds():
    return sampled([32e6, 101e6, 172e6, 243e6, 315e6, 386e6], explained("leak"))


def of_an_hour():
    """Memory began to rise three minutes ago, far below the peak at the start."""
    return sampled([9e9, 9e9, *(2e9 + RATE / 4 * max(0, n - 230) for n in range(242))], explained("leak"))


@pytest.mark.parametrize("run", [of_75_seconds(), of_an_hour()], ids=["75 s", "an hour"])
def test_the_last_lines_of_a_leaking_run_say_what_the_first_say(run):
    report = analyse(run)
    text = as_text(report, 30)
    assert report.verdict == "leak"
    assert "leak: Memory grows by 267 MB/min. 100% of it is `Rollout.registry`" in text
    assert SHOUTED.findall(text) == ["LEAK"]
    assert re.findall(r"(?m)^Growth per minute +(.+)$", text) == ["+267 MB"]
    assert not [word for word in WORDS if word != "leak" and re.search(rf"\b{word}\b", text)]


def test_a_short_run_has_one_baseline_and_each_of_its_rows_a_time():
    text = as_text(analyse(of_75_seconds()), 30)
    rows = re.findall(r"(?m)^(After .+?|Trainer initialized.*?) +[\d.]+ +\S+", text)
    assert rows == ["Trainer initialized (baseline)", *(f"After {15 * n} s" for n in range(1, 6))]
    assert [text.count(title) for title in ("BASELINE:", "(baseline)", "SNAPSHOT: After 75 s")] == [1, 1, 1]


def test_cycles_that_have_not_ended_twice_do_not_divide_a_run():
    report = analyse(sampled([1e9, 1.1e9, 1.2e9], None, progress={"epoch": 0}))
    assert report.unit == "minute"
    assert len({row.label for row in report.trend}) == 3


LEVELS = st.lists(st.floats(1e6, 1e11), min_size=2, max_size=150)


@settings(max_examples=60, deadline=None)
@given(LEVELS, st.sampled_from([5.0, 15.0, 120.0]), st.sampled_from([MEMORY, Component("bodies", "dynamic")]))
def test_no_report_comforts_where_the_trainer_said_leak(levels, every, component):
    report = analyse(sampled(levels, explained("leak", component), every=every))
    text = as_text(report, 0)
    assert report.verdict == "leak"
    assert SHOUTED.findall(text) == ["LEAK"]
    assert "healthy" not in text
    assert "warm-up" not in text


@settings(max_examples=60, deadline=None)
@given(LEVELS, st.sampled_from([word for word in WORDS if word != "leak"]))
def test_of_levels_without_limits_no_report_says_more_than_the_trainer(levels, word):
    run = sampled(levels, explained(word), items={"food": 3})
    counted = [replace(point, items={"food": 3 + 5 * n}) for n, point in enumerate(run.points)]
    report = analyse(replace(run, points=tuple(counted)))
    assert report.verdict == word
    assert report.finding is None
    assert SHOUTED.findall(as_text(report, 0)) == [word]


@pytest.mark.parametrize("explanation", [None, {"verdict": "unheard of"}])
def test_without_the_trainers_own_verdict_nothing_is_called_healthy(explanation):
    report = analyse(sampled([1e9] * 200, explanation))
    assert report.memory.verdict == "healthy"
    assert report.verdict == "too early"
