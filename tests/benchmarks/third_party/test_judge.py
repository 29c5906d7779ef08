"""What counts as wrong with a healthy run and with a leaking one."""

from __future__ import annotations

from pathlib import Path

from benchmarks.third_party import judge, table
from benchmarks.third_party.catalog import STRANGERS, Leak, Stranger
from benchmarks.third_party.observation import Observation, ObservedAlert, load

STRANGER = Stranger("one", "a trainer", (), "snippet", Leak("a list", r"\bhistory\b", "1 MB a step"))
LEAK = {"alertname": "TrainerLeak", "kind": "leak", "severity": "critical", "resource": "memory"}
TEXT = {"summary": "memory grows", "description": "97 % of it is trainer.history"}
SERVED = ["127.0.0.1:7778"]


def healthy(**changes) -> Observation:
    return Observation("one", False, "", minutes=10, served=SERVED, scraped=SERVED, exit_code=0, **changes)


def leaking(*alerts: ObservedAlert, **changes) -> Observation:
    return Observation(
        "one", True, "", minutes=9, served=SERVED, scraped=SERVED, alerts=list(alerts), **changes
    )


def test_nothing_is_wrong_with_a_quiet_run() -> None:
    assert judge.problems(STRANGER, healthy()) == []


def test_any_alert_is_wrong_when_healthy() -> None:
    alert = ObservedAlert(
        3.2, {"alertname": "TrainerSampleStale", "kind": "health", "component": "objects"}, {}
    )
    (found,) = judge.problems(STRANGER, healthy(alerts=[alert]))
    assert "TrainerSampleStale" in found
    assert "3.2 min" in found


def test_a_warning_is_wrong_when_healthy() -> None:
    assert judge.problems(STRANGER, healthy(log=["WARNING heapwatch: no"])) == ["log: WARNING heapwatch: no"]


def test_a_verdict_that_comes_and_goes_is_noise() -> None:
    line = "INFO heapwatch: Nothing leaks."
    assert judge.problems(STRANGER, healthy(notices=4 * [line])) == []
    assert judge.problems(STRANGER, healthy(notices=5 * [line])) == [
        f"log: 5 lines of level INFO, the last: {line}"
    ]


def test_a_trainer_that_serves_nothing_or_is_not_scraped_has_port_trouble() -> None:
    silent = Observation("one", False, "", exit_code=0)
    assert judge.problems(STRANGER, silent) == ["port: 0 of 1 processes served metrics"]
    unseen = Observation("one", False, "", served=SERVED, exit_code=0)
    assert judge.problems(STRANGER, unseen) == ["port: Prometheus did not scrape 127.0.0.1:7778"]


def test_a_rank_that_serves_nothing_is_port_trouble() -> None:
    ranks = Stranger("one", "", (), "snippet", STRANGER.leak, ranks=2)
    assert judge.problems(ranks, healthy()) == ["port: 1 of 2 processes served metrics"]


def test_a_crash_is_wrong_and_a_run_that_was_ended_is_not() -> None:
    crashed = healthy(tracebacks=["OSError: taken"])
    crashed.exit_code = 1
    assert judge.problems(STRANGER, crashed) == ["traceback: OSError: taken", "exit code 1"]
    assert judge.problems(STRANGER, leaking(ObservedAlert(5, LEAK, TEXT, named=5))) == []


def test_a_leak_must_be_reported_and_named() -> None:
    assert judge.problems(STRANGER, leaking()) == ["leak not reported in 9 min", "leak not named in 9 min"]
    assert judge.problems(STRANGER, leaking(ObservedAlert(5, LEAK, TEXT))) == ["leak not named in 9 min"]


def test_a_leak_named_too_late_is_wrong() -> None:
    late = leaking(ObservedAlert(9, LEAK, TEXT, named=9.5))
    assert judge.problems(STRANGER, late) == [
        "leak reported after 9.0 min, 8 allowed",
        "leak named after 9.5 min, 8 allowed",
    ]
    slow = Stranger("one", "", (), "snippet", Leak("", "history", "", fast=False))
    assert judge.problems(slow, late) == []


def test_another_alert_does_not_report_a_leak() -> None:
    growth = ObservedAlert(2, LEAK | {"kind": "growth"}, TEXT, named=2)
    assert judge.reported(leaking(growth)) is None
    assert judge.named(leaking(growth)) is None


def test_explain_names_a_leak_too() -> None:
    assert judge.problems(STRANGER, leaking(ObservedAlert(5, LEAK, {}), explained=6.0)) == []
    assert judge.named(leaking(ObservedAlert(5, LEAK, TEXT, named=7), explained=6.0)) == 6


def test_an_observation_is_read_back_as_it_was_stored(tmp_path: Path) -> None:
    seen = leaking(ObservedAlert(5, LEAK, TEXT, named=7, notified=True), memory=(1e9, 2e9))
    seen.save(tmp_path)
    assert load(tmp_path / "one-leaking.json") == seen


def test_the_page_has_a_row_for_every_run() -> None:
    seen = {}
    for stranger in STRANGERS:
        for leaks in (False, True):
            seen[stranger.name, leaks] = Observation(
                stranger.name, leaks, "a 1.0", minutes=10, memory=(5e8, 6e8)
            )
    page = table.document(seen)
    for stranger in STRANGERS:
        assert page.count(f"| {stranger.name} |") == 2
    assert "+10.0 MB/min" in page
    assert "port: 0 of 2 processes served metrics" in page
