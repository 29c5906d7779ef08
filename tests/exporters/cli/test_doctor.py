import json
import re

from heapwatch.cli import doctor
from heapwatch.collectors.process import ProcessCollector

NOBODY = "127.0.0.1:1"


def test_trainer_that_works(trainer, run):
    code, printed, _ = run("doctor", trainer.address, "--prometheus", NOBODY)
    assert code == 1
    for line in (
        r"ok +prometheus-client +\d",
        r"ok +process +\d+ series",
        r"ok +answers +walker",
        r"ok +training +progressing",
        r"ok +bodies +works, sampled \d+ s ago",
        r"FAIL +answers +http://127.0.0.1:1/.* does not answer",
    ):
        assert re.search(line, printed), line
    code, printed, _ = run("doctor", trainer.address, "--prometheus", NOBODY, "--json")
    document = json.loads(printed)
    assert (code, document["ok"]) == (1, False)
    states = {
        (section["title"].split()[0], finding["what"], finding["state"])
        for section in document["sections"]
        for finding in section["findings"]
    }
    assert states >= {
        ("Installed", "psutil", "ok"), ("Trainer", "answers", "ok"), ("Prometheus", "answers", "FAIL"),
    }  # fmt: skip


def test_nobody_there(run, monkeypatch):
    code, printed, _ = run("doctor", NOBODY, "--prometheus", NOBODY)
    assert (code, printed.count("FAIL")) == (1, 2)
    monkeypatch.setenv("HEAPWATCH_TOKEN_FILE", "/nowhere/token")
    code, printed, _ = run("doctor", NOBODY, "--prometheus", NOBODY, "--quiet")
    assert code == 1
    assert re.search(r"FAIL +token +.*/nowhere/token", printed)
    assert all(line.startswith(("  FAIL", "  WARN")) for line in printed.splitlines())


def test_collector_that_fails_says_why_and_those_without_anything_to_read_take_one_line(monkeypatch):
    def broken(self):
        raise PermissionError(13, "no /proc here")

    monkeypatch.setattr(ProcessCollector, "collect", broken)
    checks = list(doctor.collectors())
    findings = {finding.what: finding for finding in checks}
    assert findings["process"].state == "FAIL"
    assert "PermissionError: [Errno 13] no /proc here, raised at test_doctor.py" in findings["process"].detail
    assert findings["info"].state == "ok"
    (idle,) = [finding for finding in checks if finding.state == "none"]
    assert "nothing to read: " in idle.detail
    assert len(idle.detail.split(", ")) > 5
    assert checks[-1] == idle
