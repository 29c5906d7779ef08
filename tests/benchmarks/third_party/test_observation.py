"""What counts as wrong with a healthy run and with a leaking one."""

import pytest

from benchmarks.third_party.catalog import Leak, Trainer
from benchmarks.third_party.observation import Observation, ObservedAlert

TRAINER = Trainer("one", "a trainer", "snippet", Leak("a list", r"\bhistory\b", "1 MB a step"))
LEAK = {"alertname": "TrainerLeak", "kind": "leak", "severity": "critical", "resource": "memory"}
STALE = {"alertname": "TrainerSampleStale", "kind": "health", "component": "objects"}
SERVED = ["127.0.0.1:7778"]
NOTICE = "INFO heapwatch: Nothing leaks."


def healthy(**changes) -> Observation:
    seen = {"minutes": 10, "served": SERVED, "scraped": SERVED, "exit_code": 0, **changes}
    return Observation("one", False, **seen)


def leaking(*alerts: ObservedAlert, **changes) -> Observation:
    seen = {"minutes": 9, "served": SERVED, "scraped": SERVED, "alerts": list(alerts), **changes}
    return Observation("one", True, **seen)


LATE = ObservedAlert(9, LEAK, named=9.5)


@pytest.mark.parametrize(
    ("seen", "problems"),
    [
        (healthy(), []),
        (healthy(alerts=[ObservedAlert(3.2, STALE)]), ["alert: TrainerSampleStale , ? (objects), 3.2 min"]),
        (healthy(log=["WARNING heapwatch: no"]), ["log: WARNING heapwatch: no"]),
        (healthy(notices=4 * [NOTICE]), []),
        (healthy(notices=5 * [NOTICE]), [f"log: 5 lines of level INFO, the last: {NOTICE}"]),
        (healthy(served=[], scraped=[]), ["port: 0 of 1 processes served metrics"]),
        (healthy(scraped=[]), ["port: Prometheus did not scrape 127.0.0.1:7778"]),
        (healthy(tracebacks=["OSError: taken"], exit_code=1), ["traceback: OSError: taken", "exit code 1"]),
        (leaking(ObservedAlert(5, LEAK, named=5)), []),
        (leaking(), ["leak not reported in 9 min", "leak not named in 9 min"]),
        (leaking(ObservedAlert(5, LEAK)), ["leak not named in 9 min"]),
        (leaking(LATE), ["leak reported after 9.0 min, 8 allowed", "leak named after 9.5 min, 8 allowed"]),
        (leaking(ObservedAlert(5, LEAK), explained=6.0), []),
    ],
)
def test_what_is_wrong_with_a_run_is_reported(seen, problems):
    assert seen.problems(TRAINER) == problems


def test_another_alert_does_not_report_a_leak_and_explain_may_name_it_first() -> None:
    growth = leaking(ObservedAlert(2, LEAK | {"kind": "growth"}, named=2))
    assert (growth.reported, growth.named) == (None, None)
    assert leaking(ObservedAlert(5, LEAK, named=7), explained=6.0).named == 6
