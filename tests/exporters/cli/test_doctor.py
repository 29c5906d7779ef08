import json
import re

import pytest

from tests.support.unreadable_files import HOSTILE


def test_trainer_that_works(trainer, heapwatch):
    command = heapwatch("doctor", trainer.address, "--prometheus", "127.0.0.1:1")
    assert command.wait() == 1
    assert re.search(r"ok +prometheus-client +\d", command.text)
    assert re.search(r"ok +process +\d+ series", command.text)
    assert re.search(r"ok +answers +walker", command.text)
    assert re.search(r"ok +training +progressing", command.text)
    assert re.search(r"ok +bodies +works, sampled \d+ s ago", command.text)
    assert re.search(r"FAIL +answers +http://127.0.0.1:1/.* does not answer", command.text)


def test_json_for_scripts(trainer, heapwatch):
    command = heapwatch("doctor", trainer.address, "--prometheus", "127.0.0.1:1", "--json")
    assert command.wait() == 1
    told = json.loads(command.text)
    assert told["ok"] is False
    states = {
        (section["title"].split()[0], finding["what"]): finding["state"]
        for section in told["sections"]
        for finding in section["findings"]
    }
    assert states["Installed", "psutil"] == "ok"
    assert states["Trainer", "answers"] == "ok"
    assert states["Prometheus", "answers"] == "FAIL"


def test_nobody_there(heapwatch):
    command = heapwatch("doctor", "127.0.0.1:1", "--prometheus", "127.0.0.1:1")
    assert command.wait() == 1
    assert command.text.count("FAIL") == 2
    assert "Traceback" not in command.text


def test_token_file_that_cannot_be_read_is_named(heapwatch):
    command = heapwatch("doctor", "127.0.0.1:1", HEAPWATCH_TOKEN_FILE="/nowhere/token")
    command.wait()
    assert re.search(r"FAIL +token +.*/nowhere/token", command.text)


def test_collector_that_fails_says_why(monkeypatch):
    from heapwatch.cli import doctor
    from heapwatch.collectors.process import ProcessCollector

    def broken(self):
        raise PermissionError(13, "no /proc here")

    monkeypatch.setattr(ProcessCollector, "collect", broken)
    findings = {finding.what: finding for finding in doctor.collectors()}
    assert findings["process"].state == "FAIL"
    assert "PermissionError: Permission denied, raised at test_doctor.py" in findings["process"].detail
    assert findings["info"].state == "ok"


def test_collectors_without_anything_to_read_take_one_line():
    from heapwatch.cli import doctor

    findings = list(doctor.collectors())
    (idle,) = [finding for finding in findings if finding.state == "none"]
    assert "nothing to read: " in idle.detail
    assert len(idle.detail.split(", ")) > 5
    assert findings[-1] == idle


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_file_among_the_targets_that_is_none_is_named(kind, tmp_path):
    from heapwatch.cli import doctor

    targets = tmp_path / "targets"
    targets.mkdir()
    HOSTILE[kind](targets / "x.json")
    findings = [finding for finding in doctor.configuration() if finding.what == "targets"]
    assert findings[0].state == "ok"
    if kind == "other JSON":
        return
    (warning,) = findings[1:]
    assert warning.state == "WARN"
    assert warning.detail.startswith(f"{targets}/x.json ")
