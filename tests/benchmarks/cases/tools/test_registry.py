"""What each tool prints becomes findings: a type, a line, or both."""

import pytest

from benchmarks.cases.tools.in_process import findings
from benchmarks.cases.tools.registry import OURS, RULES, TOOLS, own_line, report

SCRIPT = """import time
kept = []
while True:
    kept.append([bytearray(100_000) for _ in range(3)])
    time.sleep(0.02)
"""


def test_every_tool_has_its_rule():
    assert list(TOOLS) == list(RULES)
    assert len(TOOLS) == 6
    assert OURS in TOOLS


def test_a_type_a_place_or_both_make_a_finding():
    both, kind, line = findings([["app.Trace", "train.py:3"], ["list", None], [None, "/a/train.py:12"]])
    assert (both.type, both.sites) == ("app.Trace", (("train.py", 3),))
    assert (kind.type, kind.sites) == ("list", ())
    assert (line.type, line.sites) == (None, (("/a/train.py", 12),))


def test_memray_charges_the_innermost_line_of_the_script():
    stack = [("zeros", "numpy.py", 9), ("make", "/a/train.py", 4), ("main", "/a/train.py", 20)]
    assert own_line(stack, "/a/train.py") == 4
    assert own_line(stack, "/b/train.py") is None


@pytest.mark.slow
def test_tracemalloc_reports_the_line_of_a_script_that_leaks(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    reported = report("tracemalloc", script, tmp_path / "run", 5)
    assert reported.failure is None
    assert reported.findings[0].sites == ((str(script), 4),)


def test_a_script_that_fails_is_a_failure_and_no_finding(tmp_path):
    broken = tmp_path / "train.py"
    broken.write_text("raise SystemExit('no data')\n")
    reported = report("tracemalloc", broken, tmp_path / "run", 5)
    assert not reported.findings
    assert "no data" in reported.failure
