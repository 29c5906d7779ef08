"""What peers print becomes findings: a type, a line, or both."""

import sys
from contextlib import suppress

import psutil
import pytest

from benchmarks.zoo.running import run
from benchmarks.zoo.tools import leak_hunter_growth, memray_leaks, tracemalloc_difference
from benchmarks.zoo.tools.registry import OURS, RULES, TOOLS, report

SCRIPT = """import time
kept = []
while True:
    kept.append([bytearray(100_000) for _ in range(3)])
    time.sleep(0.02)
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def test_every_tool_has_its_rule():
    assert list(TOOLS) == list(RULES)
    assert len(TOOLS) == 6
    assert OURS in TOOLS


def test_a_line_of_tracemalloc_is_a_site():
    (found,) = tracemalloc_difference.findings([["/a/train.py:12", 5e6]])
    assert found.sites == (("/a/train.py", 12),)


def test_types_and_sites_of_leak_hunter_go_together():
    first, second = leak_hunter_growth.findings([["app.Trace", "train.py:3"], ["list", None]])
    assert (first.type, first.sites) == ("app.Trace", (("train.py", 3),))
    assert (second.type, second.sites) == ("list", ())


def test_memray_charges_the_innermost_line_of_the_script():
    stack = [("zeros", "numpy.py", 9), ("make", "/a/train.py", 4), ("main", "/a/train.py", 20)]
    assert memray_leaks.own_line(stack, "/a/train.py") == 4
    assert memray_leaks.own_line(stack, "/b/train.py") is None


def test_tracemalloc_tells_the_line_of_a_script_that_leaks(script, tmp_path):
    told = report(tracemalloc_difference.TITLE, script, tmp_path / "run", 5)
    assert told.failure is None
    assert told.findings[0].sites == ((str(script), 4),)


def test_a_script_that_fails_is_a_failure_and_no_finding(tmp_path):
    broken = tmp_path / "train.py"
    broken.write_text("raise SystemExit('no data')\n")
    told = report(tracemalloc_difference.TITLE, broken, tmp_path / "run", 5)
    assert not told.findings
    assert "no data" in told.failure


def test_a_run_ends_whatever_the_script_started(tmp_path):
    child = "import subprocess, time; print(subprocess.Popen(['sleep', '600']).pid); time.sleep(600)"
    outcome = run([sys.executable, "-c", child], tmp_path / "run", 5, interrupt=True)
    assert outcome.status not in (0, None)
    with suppress(psutil.NoSuchProcess):
        psutil.Process(int(outcome.stdout)).wait(30)
