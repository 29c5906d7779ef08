"""A trainer that answers wrongly ends no command."""

import json

import pytest

from heapwatch.cli.cleanup import Cleaner
from heapwatch.cli.monitor import EXIT_CODES, sample
from heapwatch.cli.reporter import Reporter
from tests.support.wrong_answers import answering

FINE = {"training": "unknown", "performance": {"memory_mb": 1.0}, "alerts": []}
CRITICAL = {
    "severity": "critical", "kind": "threshold", "resource": "memory", "component": "trainer",
    "value": 9e9, "limit": 1e9,
}  # fmt: skip


def status(**changes):
    return json.dumps(FINE | changes).encode()


WRONG = [
    b"\xff\xfe\x00",
    b"x" * 5_000_000,
    b"[]",
    status(alerts=[{"severity": "doom"}]),
    status(alerts=[CRITICAL | {"severity": "doom"}]),
    status(body_types={"\x1b]0;owned\x07\u009b2J": 99999}, entities={"a": "many"}),
    status(performance={"memory_mb": 10**400}),
    status(leaks={"verdict": ["leak"]}),
    status(alerts=[CRITICAL | {"component": f"t{n}"} for n in range(1000)]),
    status(alerts=[CRITICAL]),
]
ANSWERS = [
    b"[]",
    b"null",
    b"[" * 100_000,
    json.dumps({"status": "done", "freed": 3, "before": [1], "after": "x", "errors": 7}).encode(),
    json.dumps({"status": "pending", "detail": "x" * 900_000}).encode(),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_wrong_answer_ends_no_monitor(number):
    answer = ANSWERS[number % len(ANSWERS)]
    with answering({"/performance_status": WRONG[number], "/force_cleanup": answer}) as server:
        reporter, cleaner = Reporter(), Cleaner("correct-horse")
        for _ in range(2):
            lines = sample(server.url, reporter, cleaner)
            assert all(isinstance(line, str) for line in lines)
        assert reporter.severity in EXIT_CODES
        assert not any("correct-horse" in str(request) for request in server.seen)


EXPLANATIONS = {
    "wrong types": b'{"verdict": 3, "findings": "none"}',
    "a list": b"[]",
    "a huge number": b'{"verdict":"leak","seconds":1'
    + b"0" * 400
    + b',"growth_bytes_per_minute":1,"findings":[]}',
    "not a number": b'{"verdict":"leak","seconds":NaN,"findings":[]}',
    "deep": b"[" * 100_000,
    "endless": b" " * 5_000_000,
    "empty": b"",
    "not text": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("name", EXPLANATIONS)
def test_an_explanation_that_is_none_is_one_line(name, run, tmp_path):
    recorded = tmp_path / "run.jsonl"
    recorded.write_bytes(b'{"explanation":' + EXPLANATIONS[name] + b"}\n")
    with answering({"/explain": EXPLANATIONS[name]}) as server:
        for source in (server.url, recorded):
            code, printed, errors = run("explain", source)
            assert (code, printed) == (3, "")
            assert len(errors.splitlines()) == 1
            assert len(errors) < 300


STATUSES = {
    "a list": [],
    "wrong types": {"trainer": 3, "memory": [], "buffers": {"a": 3}, "gpu_memory": {"0": None}, "leaks": "x"},
    "no numbers": {"memory": {"resident_bytes": {"trainer": 10**400, "worker": "9"}, "limit_bytes": -1e300}},
    "names that draw": {"trainer": {"trainer": "\x1b[2J" * 99}, "buffers": {"\x1b]0;x\x07": {"items": 1}}},
    "an unknown verdict": {"leaks": {"verdict": "doom\x1b[2J", "message": "\x9b2J"}},
}


@pytest.mark.parametrize("name", STATUSES)
def test_no_status_ends_top_or_controls_its_terminal(name, run):
    document = json.dumps(STATUSES[name]).encode()
    with answering({"/performance_status": document, "/explain": b"no"}) as server:
        code, printed, _ = run("top", "--once", server.url)
    lines = printed.splitlines()
    assert code in (0, 3)
    assert lines
    assert all(line.isprintable() and len(line) < 400 for line in lines)
