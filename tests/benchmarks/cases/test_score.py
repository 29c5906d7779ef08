"""Scoring: the first three findings count, an end only where there is one, every finding on a twin."""

import pytest

from benchmarks.cases.score import Report, Score, ToolFinding, Total, goals, judge
from tests.support.made_cases import case

CASE = {
    "script": "history = []\nwhile True:\n    history.append(bytes(1000))  # LEAK\n",
    "paths": ("history",),
    "types": ("Frame",),
    "kinds": ("native",),
}
RIGHT = ToolFinding(path="__main__.history", sites=(("/somewhere/train.py", 3),), share=0.9)
WRONG = ToolFinding(path="__main__.cache", sites=(("/somewhere/train.py", 1),), share=0.1)


def judged(*findings, twin=(), **changed):
    return judge(case(**CASE, **changed), Report(findings, 12.0), Report(twin))


def test_a_wrong_finding_explains_nothing_and_none_has_no_time():
    assert judged(RIGHT) == Score("kept", True, True, True, 0.9, 12.0, 0)
    assert judged(WRONG) == Score("kept", True, False, False, 0.0, 12.0, 0)
    assert judged() == Score("kept", False, False, False, 0.0, None, 0)


@pytest.mark.parametrize(("before", "named"), [(2, True), (3, False)])
def test_only_the_first_three_findings_count(before, named):
    score = judged(*[WRONG] * before, RIGHT)
    assert (score.named, score.right_line) == (named, named)


def test_a_type_or_a_kind_is_a_name_and_a_line_of_another_file_is_not_right():
    assert judged(ToolFinding(type="list of Frame")).named
    assert judged(ToolFinding(kind="native")).named
    assert not judged(ToolFinding(sites=(("/lib/other.py", 3),))).right_line


def test_an_end_counts_only_where_there_is_one():
    filling = ToolFinding(path="history", bounded=True)
    assert not judged(filling).detected
    assert judged(filling, bounded=True).named
    assert judged(RIGHT, twin=(WRONG, filling)).findings_on_twin == 1


def scored(detected=True, named=True, line=True, share=0.9, twin=0):
    return Score("c", detected, named, line, share, 10.0, twin)


@pytest.mark.parametrize(
    ("scores", "missed"),
    [
        ([scored()] * 10, []),
        ([scored(detected=False)] * 2 + [scored()] * 8, ["detected, at least 95%"]),
        ([scored(named=False)] * 2 + [scored()] * 8, ["named, at least 90%"]),
        ([scored(twin=1)] * 2 + [scored()] * 8, ["twins with a finding, none"]),
        ([scored(line=False, share=0.0)] + [scored()] * 3, []),
        ([scored(share=0.5)] * 3 + [scored()], ["growth explained at the median, at least 80%"]),
    ],
)
def test_each_goal_can_be_missed(scores, missed):
    assert [goal.text for goal in goals(Total(scores)) if not goal.holds] == missed
    assert Total(scores).median_seconds == 10.0
