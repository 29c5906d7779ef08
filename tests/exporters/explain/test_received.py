"""Explanations that came from outside are checked; series carry them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from heapwatch.analysis.judge import LiveVerdicts
from heapwatch.analysis.readings import Readings
from heapwatch.collectors.explanation import ExplanationCollector
from heapwatch.explain.findings import Explanation, Finding, TimeLeft, message, narrative
from heapwatch.explain.received import explanation_of, exposed_explanation, verdict_of
from heapwatch.explain.sites import Site

FOUND = Finding(
    "container", "A.items", "list of int", 10, 1000, 60.0, 6000.0, 0.5,
    site=Site("a.py", 3, "fill"), holders=("A",), remedy="`clear()`", is_leak=True,
)  # fmt: skip
NATIVE = Finding("native", None, "memory")
GOOD = Explanation("leak", 120.0, 12_000.0, 0.5, (FOUND, NATIVE), "").as_json()


def changed(**fields: Any) -> dict[str, Any]:
    return json.loads(json.dumps(GOOD)) | fields


def with_finding(**fields: Any) -> dict[str, Any]:
    return changed(findings=[json.loads(json.dumps(GOOD))["findings"][0] | fields])


def test_what_was_sent_is_what_is_shown():
    sent = Explanation("leak", 120, 12_000, 0.5, (FOUND, NATIVE), "")
    assert explanation_of(json.loads(json.dumps(GOOD))) == sent


def test_fields_and_words_of_a_later_version_are_no_error():
    explanation = explanation_of(changed(verdict="slumbering", later={"a": 1}))
    assert narrative(explanation).startswith("slumbering: ")


@pytest.mark.parametrize(
    "document",
    [
        None, "leak", [GOOD], {}, changed(findings=[3]), changed(findings=[{}]), changed(verdict=3),
        changed(seconds="long"), changed(growth_bytes_per_minute=10**400),
        changed(growth_bytes_per_minute=float("nan")),
        with_finding(share="half"), with_finding(bytes="many"), with_finding(holders=3),
        with_finding(site="a.py:3"), with_finding(site={"file": "a.py"}),
    ],
)  # fmt: skip
def test_anything_else_is_one_error(document):
    with pytest.raises(ValueError, match=r"^.{5,250}$"):
        explanation_of(document)


HISTORY = Finding(
    "container", "trainer.history", "list of dict", 5035, 122_000_000, None, 146e6, 0.97,
    site=Site("train.py", 7, ""), remedy="`collections.deque(maxlen=...)`", is_leak=True,
)  # fmt: skip
REPLAY = Finding("buffer", "replay", "deque", 6118, 488_146_000, None, 52e6, 0.4, 1_000_000_000, fits=False)
LEFT = TimeLeft(600.0, 900.0)


def exposed(explanation):
    return Readings(ExplanationCollector(lambda: explanation, dict).collect())


@pytest.mark.parametrize(
    "explanation",
    [
        Explanation("leak", 0.0, 151e6, 0.97, (HISTORY,), "", LEFT),
        Explanation("will not fit", 0.0, 130e6, 0.97, (replace(HISTORY, is_leak=False), REPLAY), "", LEFT),
        Explanation("filling", 0.0, 52e6, 1.0, (replace(REPLAY, capacity_items=7000, fits=True),)),
    ],
)
def test_series_carry_the_whole_message(explanation):
    again = exposed_explanation(exposed(explanation))
    # A label has no backticks: tables would show them as they are.
    assert message(again).replace("`", "") == message(explanation).replace("`", "")
    assert again.verdict == explanation.verdict
    assert again.time_left == explanation.time_left


def test_what_is_not_known_yet_says_what_grows_so_far():
    early = Explanation("too early", 0.0, 151e6, 0.97, (replace(HISTORY, is_leak=False),), "what is not told")
    assert message(exposed_explanation(exposed(early))).startswith(
        "Too early to tell. So far, 97% of it is `trainer.history`"
    )


def test_a_process_without_an_explainer_is_judged_by_the_rules_alone():
    assert exposed_explanation(Readings([])) is None
    assert exposed_explanation(Readings(parse('trainer_memory_verdict{verdict="improbable"} 1\n'))) is None
    assert verdict_of(None, LiveVerdicts().verdicts()) == ("too early", "watched for 0 of 24 minutes")
