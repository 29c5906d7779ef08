"""What series tell of an explanation."""

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from heapwatch.analysis.live import LiveVerdicts
from heapwatch.analysis.readings import Readings
from heapwatch.analysis.verdict import WORDS
from heapwatch.collectors.explanation import ExplanationCollector
from heapwatch.explain.findings import Explanation, Finding, TimeLeft, message
from heapwatch.explain.source.sites import Site
from heapwatch.explain.told import told, verdict_of

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
        Explanation("leak", 0.0, 151e6, 0.97, (HISTORY, REPLAY)),
        Explanation("will not fit", 0.0, 130e6, 0.97, (replace(HISTORY, is_leak=False), REPLAY), "", LEFT),
        Explanation("filling", 0.0, 52e6, 1.0, (replace(REPLAY, capacity_items=7000, fits=True),)),
        Explanation("warm-up", 0.0, 52e6, 1.0),
        Explanation("healthy", 0.0, 0.0, 1.0),
    ],
)
def test_series_carry_the_whole_message(explanation):
    again = told(exposed(explanation))
    # A label has no backticks: tables would show them as they are.
    assert message(again).replace("`", "") == message(explanation).replace("`", "")
    assert again.verdict == explanation.verdict
    assert again.time_left == explanation.time_left


@pytest.mark.parametrize("word", WORDS)
def test_every_word_is_carried(word):
    assert told(exposed(Explanation(word, 1.0, 1.0, 1.0))).verdict == word


def test_what_cannot_be_told_yet_says_what_grows_so_far():
    early = Explanation("too early", 0.0, 151e6, 0.97, (replace(HISTORY, is_leak=False),), "what is not told")
    assert message(told(exposed(early))).startswith(
        "Too early to tell. So far, 97% of it is `trainer.history`"
    )


def test_a_process_without_an_explainer_is_judged_by_the_rules_alone():
    assert told(Readings([])) is None
    assert told(Readings(parse('trainer_memory_verdict{verdict="improbable"} 1\n'))) is None
    assert verdict_of(None, LiveVerdicts().verdicts()) == ("too early", "watched for 0 of 24 minutes")
