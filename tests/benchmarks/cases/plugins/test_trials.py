"""A failure counts if it is the plugin's; whatever else goes wrong is an error."""

import pytest

from benchmarks.cases.plugins.plugin import OURS
from benchmarks.cases.plugins.trials import Trial, Verdict, keep, load, try_out, verdict
from benchmarks.running import Outcome
from tests.benchmarks.cases.made import case

SCRIPT = """import time
kept = []
while True:
    item = bytearray(100_000)
    kept.append(item)  # LEAK
    time.sleep(0.5)
"""
CASE = case(script=SCRIPT, fixes={"    kept.append(item)  # LEAK\n": ""}, paths=("kept",))
FAILED = """
something grows with every one of 24 rounds:
  train.{} (list of bytearray): +20 kB a round, filled at /a/train.py:{} in <module>.
1 failed in 3.01s
"""


def said(text, status=0):
    return verdict(CASE, OURS, Outcome(text, "Killed\n", status, 3.0))


def test_a_failure_is_judged_by_what_it_names():
    assert said(FAILED.format("kept", 5), 1) == Verdict("fails", True, True, 3.0, "train.kept train.py:5")
    assert said(FAILED.format("other", 9), 1) == Verdict("fails", False, False, 3.0, "train.other train.py:9")


@pytest.mark.parametrize(
    "end", ["1 passed in 2.00s", "1 passed, 3 warnings in 2.00s", "== 1 passed in 61.00s (0:01:01) =="]
)
def test_a_pass_is_a_pass(end):
    assert said(f".\n{end}\n").said == "passes"


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("E   benchmarks.ScriptEnded: train.py has ended\n1 failed in 3.01s\n", 1, "ScriptEnded"),
        ("E   ValueError: no such limit\n1 error in 3.01s\n", 1, "no such limit"),
        ("1 passed in 3.01s\n", -11, "ended with -11: Killed"),
        ("no tests ran in 0.01s\n", 5, "ended with 5"),
        ("", None, "did not end within"),
    ],
)
def test_everything_else_is_an_error(text, status, words):
    reported = said(text, status)
    assert reported.said == "error"
    assert words in reported.words


@pytest.mark.slow
def test_a_leak_fails_and_its_twin_passes(tmp_path):
    trial = try_out(CASE, OURS, tmp_path)
    assert trial.leak.said == "fails", trial
    assert trial.leak.named
    assert trial.leak.line
    assert trial.twin.said == "passes", trial


def test_trials_of_several_runs_are_put_together(tmp_path):
    first, second = Trial(Verdict("fails"), Verdict("passes")), Trial(Verdict("error"), Verdict("passes"))
    keep(tmp_path, "kept", "heapwatch", second)
    keep(tmp_path, "kept", "pytest-memray", second)
    keep(tmp_path, "kept", "heapwatch", first)
    assert load(tmp_path, ["kept", "other"]) == {"kept": {"heapwatch": first, "pytest-memray": second}}
