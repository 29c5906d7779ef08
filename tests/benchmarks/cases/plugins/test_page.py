"""The page has every plugin, every case, and all that went wrong."""

from dataclasses import replace

from benchmarks.cases.plugins.page import write
from benchmarks.cases.plugins.plugin import OURS, PLUGINS
from benchmarks.cases.plugins.trials import Trial, Verdict
from tests.benchmarks.cases.made import case

CASE = case()
GOOD = Trial(Verdict("fails", True, True, 3.0, "train.kept"), Verdict("passes", seconds=2.0))


def written(path, cases, results):
    write(path / "page.md", cases, results)
    return (path / "page.md").read_text()


def test_the_page_has_every_plugin_and_its_totals(tmp_path):
    page = written(tmp_path, [CASE], {"kept": dict.fromkeys(PLUGINS, GOOD)})
    for title, plugin in PLUGINS.items():
        assert f"| {title}" in page
        assert plugin.rule in page
    assert page.count("| 1 of 1 | 1 | 1 | 1 of 1 | 0 | 2 |") == len(PLUGINS)
    cells = " fails, named, line | passes | 3, 2 |" * len(PLUGINS)
    assert f"| [kept](https://github.com/a/b/issues/1) |{cells}" in page
    assert "went wrong" not in page


def test_misses_false_findings_and_errors_are_reported(tmp_path):
    bad = Trial(Verdict("passes"), Verdict("fails", words="list"))
    broken = Trial(Verdict("error", words="did not end"), Verdict("passes"))
    results = {"kept": {OURS.title: bad, "pytest-memray": broken}}
    page = written(tmp_path, [CASE, replace(CASE, name="other")], results)
    assert "1 of 2 cases have been run; not yet: other." in page
    assert f"- {OURS.title}, kept: the leak passes" in page
    assert f"- {OURS.title}, kept: the twin fails (list)" in page
    assert "- pytest-memray, kept: the leak is an error: did not end" in page
    assert "| **passes** | **fails** |" in page


def test_nothing_is_written_without_ours(tmp_path):
    write(tmp_path / "page.md", [CASE], {"kept": {"pytest-memray": GOOD}})
    assert not (tmp_path / "page.md").exists()
