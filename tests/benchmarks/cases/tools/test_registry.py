"""What each tool prints becomes findings: a type, a line, or both."""

import json

import pytest

from benchmarks.cases.tools.registry import findings, last_document, report

SCRIPT = """import time
kept = []
while True:
    kept.append([bytearray(100_000) for _ in range(3)])
    time.sleep(0.02)
"""


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


def finding(**changed):
    return {
        "kind": "container", "path": "trainer.history", "type": "list", "items": 40, "bytes": 48e6,
        "items_per_minute": 40, "bytes_per_minute": 48e6, "share": 0.97, "capacity_items": None,
        "site": {"file": "train.py", "line": 212, "function": "collect"}, "holders": [], "remedy": None,
        "is_leak": True, **changed,
    }  # fmt: skip


def document(*found, verdict="leak"):
    return {"verdict": verdict, "seconds": 60, "findings": list(found)}


def test_the_last_document_is_found_behind_whatever_was_printed():
    wanted = document(finding())
    printed = 'episode 3 {"verdict": "mine"}\n{not json\n' + json.dumps(wanted, indent=2) + "\n"
    assert last_document(printed) == wanted
    assert last_document(json.dumps(wanted)) == wanted


def test_a_leak_becomes_a_finding_without_path_and_site_where_there_are_none():
    (found,) = findings(document(finding()))
    assert (found.path, found.type, found.kind, found.share) == ("trainer.history", "list", "container", 0.97)
    assert found.sites == (("train.py", 212),)
    assert not found.bounded
    (found,) = findings(document(finding(path=None, site=None, kind="native")))
    assert (found.path, found.sites) == (None, ())
    assert findings(document(finding(site=None)))[0].sites == ()


def test_a_note_is_no_finding_and_a_filling_buffer_is_one_with_an_end():
    note, filling = finding(is_leak=False), finding(is_leak=False, capacity_items=1000, kind="buffer")
    assert findings(document(note)) == ()
    assert [found.bounded for found in findings(document(filling, verdict="filling"))] == [True]
    assert findings(document(filling, verdict="healthy")) == ()
    assert findings(document({**filling, "bytes_per_minute": 0}, verdict="filling")) == ()
