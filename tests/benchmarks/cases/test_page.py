"""The page says what was measured of every tool and every case, and what went wrong."""

from dataclasses import replace

from benchmarks.cases.case import load_all
from benchmarks.cases.page import failures, render
from benchmarks.cases.results import RESULTS, Result, keep, load
from benchmarks.cases.score import Score, Total
from benchmarks.cases.tools.registry import OURS, RULES
from tests.benchmarks.cases.made import case

BOTH = [case(), case(name="other")]


def score(**changed):
    return replace(Score("kept", True, True, False, 0.5, 30.0, findings_on_twin=0), **changed)


def test_the_page_has_every_tool_every_case_and_the_missed_goals():
    scores = {tool: score(detected=tool == OURS) for tool in RULES}
    page = render([case()], {"kept": Result(60, (90e6, 1e6), scores, library="json")})
    for tool, rule in RULES.items():
        assert f"| {tool} |" in page
        assert rule in page
    row = "json | 90, 1 | yes | yes | no | 50% | 30 | 60 | 0 |"
    assert f"| [kept](https://github.com/a/b/issues/1): A list. | {row}" in page
    assert "**missed** right line, at least 75%: 0%" in page
    assert "- detected, at least 95%: 100%" in page
    assert "failed" not in page


def test_a_page_of_some_cases_says_which_have_not_been_run():
    page = render(BOTH, {"kept": Result(240, None, {OURS: score()}, library="json")})
    assert "1 of 2 cases have been run; not yet: other." in page
    assert "Each ran for 240 s" in page
    assert "| json |  | yes |" in page
    assert "memray |" not in page.partition("## How")[0]


def test_ours_is_compared_on_the_cases_that_the_others_ran_on():
    results = {
        "kept": Result(120, None, {OURS: score(named=False), "memray": score()}),
        "other": Result(120, None, {OURS: score(case="other")}),
    }
    page = render(BOTH, results)
    assert f"| {OURS} | 2 | 100% | 50% |" in page
    assert f"| {OURS}, on the cases of the others | 1 | 100% | 0% |" in page
    both = {**results, "other": Result(120, None, {OURS: score(case="other"), "memray": score(case="other")})}
    assert "of the others" not in render(BOTH, both)


def test_nothing_is_said_of_cases_that_ran_under_other_tools_alone():
    assert render([case()], {"kept": Result(240, None, {"memray": score()})}) == ""


def test_results_of_several_runs_are_put_together(tmp_path):
    keep(tmp_path, "kept", Result(60, (90e6, 1e6), {"memray": score(), OURS: score(detected=False)}))
    keep(tmp_path, "kept", Result(240, None, {OURS: score(failures=("late",))}))
    assert load(tmp_path, ["kept", "other"]) == {
        "kept": Result(240, (90e6, 1e6), {"memray": score(), OURS: score(failures=("late",))})
    }


def test_failures_are_listed():
    text = failures({"memray": Total([score(failures=("memray ended with 1: boom",))])})
    assert "- kept: memray ended with 1: boom" in text


def test_the_page_says_what_ran_and_how_busy_the_machine_was():
    runs = {
        "kept": Result(240, None, {OURS: score()}, "abc1234", 0.5),
        "other": Result(720, None, {OURS: score()}, "def5678", 4.0),
    }
    page = render(BOTH, runs)
    assert "different revisions: abc1234 (1), def5678 (1)" in page
    assert "0.5 to 4.0" in page
    unknown = {**runs, "other": Result(720, None, {OURS: score()})}
    assert "different revisions: abc1234 (1), earlier ones (1)" in render(BOTH, unknown)
    assert "All ran at revision abc1234." in render([case()], runs)


def test_what_other_tools_took_later_says_nothing_of_ours(tmp_path):
    keep(tmp_path, "kept", Result(720, None, {OURS: score()}, "abc1234", 0.5))
    keep(tmp_path, "kept", Result(120, None, {"memray": score()}, "def5678", 4.0))
    found = load(tmp_path, ["kept"])["kept"]
    assert (found.seconds, found.revision, found.load) == (720, "abc1234", 0.5)
    assert set(found.scores) == {OURS, "memray"}


def test_other_tools_were_run_for_as_long_as_the_page_says():
    """They tell what they found at the end of a run."""
    for name, result in load(RESULTS, [one.name for one in load_all()]).items():
        for tool, one in result.scores.items():
            assert tool == OURS or one.seconds is None or one.seconds >= result.seconds, (name, tool)
