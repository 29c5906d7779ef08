"""The page says what was missed and what went wrong; `make lint` compares it with the results."""

from dataclasses import replace

from benchmarks.cases.page import render
from benchmarks.cases.results import Result, keep, load
from benchmarks.cases.score import Score
from benchmarks.cases.tools.registry import OURS
from tests.support.made_cases import case

BOTH = [case(), case(name="other")]


def score(**changed):
    return replace(Score("kept", True, True, False, 0.5, 30.0, findings_on_twin=0), **changed)


def result(*, seconds=60, **scores):
    named = {tool.replace("ours", OURS): one for tool, one in scores.items()}
    return Result(seconds, named, "json")


def test_a_page_says_what_was_missed_which_cases_have_not_been_run_and_which_failed():
    page = render(BOTH, {"kept": result(ours=score(), memray=score(failures=("ended with 1: boom",)))})
    assert "**missed** right line, at least 75%: 0%" in page
    assert "1 of 2 cases have been run; not yet: other." in page
    assert "- kept: ended with 1: boom" in page


def test_results_of_several_runs_are_put_together(tmp_path):
    keep(tmp_path, "kept", result(memray=score(), ours=score(detected=False)))
    keep(tmp_path, "kept", result(seconds=240, ours=score(failures=("late",))))
    assert load(tmp_path, ["kept", "other"]) == {
        "kept": result(seconds=240, memray=score(), ours=score(failures=("late",)))
    }
