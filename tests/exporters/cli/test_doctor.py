import json
import re

from heapwatch.cli import doctor
from heapwatch.collectors.process import ProcessCollector
from tests.exporters.cli.wrong_answers import answering

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
    targets = {"activeTargets": [{"scrapeUrl": f"http://{trainer.address}/metrics", "health": "up"}]}
    body = json.dumps({"status": "success", "data": targets}).encode()
    with answering({"/api/v1/targets": body}) as prometheus:
        code, printed, _ = run("doctor", trainer.address, "--prometheus", prometheus.url)
        assert code == 0
        assert re.search("ok +sees this trainer", printed)
        assert "FAIL  sees this trainer" in run("doctor", NOBODY, "--prometheus", prometheus.url)[1]


def test_nobody_there(run, monkeypatch):
    code, printed, _ = run("doctor", NOBODY, "--prometheus", NOBODY)
    assert (code, printed.count("FAIL")) == (1, 2)
    monkeypatch.setenv("HEAPWATCH_TOKEN_FILE", "/nowhere/token")
    assert re.search(r"FAIL +token +.*/nowhere/token", run("doctor", NOBODY, "--prometheus", NOBODY)[1])


def test_collector_that_fails_says_why_and_those_without_anything_to_read_take_one_line(monkeypatch, caplog):
    def broken(self):
        raise PermissionError(13, "no /proc here")

    monkeypatch.setattr(ProcessCollector, "collect", broken)
    checks = list(doctor.collectors())
    findings = {finding.what: finding for finding in checks}
    assert findings["process"].state == "FAIL"
    assert "PermissionError: Permission denied, raised at test_doctor.py" in caplog.text
    assert findings["info"].state == "ok"
    (idle,) = [finding for finding in checks if finding.state == "none"]
    assert "nothing to read: " in idle.detail
    assert len(idle.detail.split(", ")) > 5
    assert checks[-1] == idle
