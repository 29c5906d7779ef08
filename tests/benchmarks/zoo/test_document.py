"""The page says what was measured of every tool and every case, and what went wrong."""

from benchmarks.zoo.catalogue import Case, Fix
from benchmarks.zoo.document import failures, library, write
from benchmarks.zoo.score import Score, Total
from benchmarks.zoo.tools.registry import OURS, RULES


def case(library="json"):
    return Case("kept", "Title", "https://github.com/a/b/issues/1", library, "A list.", "", (Fix("a", "b"),))


def score(**changed):
    fields = {
        "case": "kept",
        "detected": True,
        "named": True,
        "right_line": False,
        "share": 0.5,
        "seconds": 30.0,
    }
    return Score(**{**fields, "findings_on_twin": 0, **changed})


def test_the_page_has_every_tool_every_case_and_the_missed_goals(tmp_path):
    totals = {tool: Total([score(detected=tool == OURS)]) for tool in RULES}
    write(tmp_path / "page.md", [case()], totals, {"kept": (90e6, 1e6)}, 60)
    page = (tmp_path / "page.md").read_text()
    for tool, rule in RULES.items():
        assert f"| {tool} |" in page
        assert rule in page
    row = "json | 90, 1 | yes | yes | no | 50% | 30 | quiet |"
    assert f"| [kept](https://github.com/a/b/issues/1): A list. | {row}" in page
    assert "**missed** right line, at least 75%: 0%" in page
    assert "- detected, at least 95%: 100%" in page
    assert "failed" not in page


def test_failures_are_listed():
    text = failures({"memray": Total([score(failures=("memray ended with 1: boom",))])})
    assert "- kept: memray ended with 1: boom" in text


def test_a_library_has_its_version_and_a_standard_module_none():
    assert library(case("psutil")).startswith("psutil ")
    assert library(case("json")) == "json"
