"""Compare what fired with what leaks, and sum it up."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from benchmarks.leaks.scenario import Scenario
from heapwatch.text.numbers import size

Alert = dict[str, str]
Firing = dict[int, list[Alert]]  # minute -> alerts that fire then

COMPARED = {
    "DocumentsMonitor": "monitor of the example systems",
    "FixedThresholds": "fixed thresholds",
    "PredictLinear": "`predict_linear` alone",
    "CorootCheck": "Coroot's check in PromQL",
}
OURS = "Heapwatch"


@dataclass
class Score:
    """What one detector made of all scenarios: minutes of delay, bytes lost, days of healthy trainers."""

    found: int = 0
    false: int = 0
    leaks: int = 0
    healthy_false: int = 0
    healthy_days: float = 0.0
    delays: list[float] = field(default_factory=list)
    lost: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def cells(self) -> list[str]:
        """Precision, recall, and the delay of half of the leaks and of nine in ten."""
        nan = float("nan")
        said = self.found + self.false
        latest = statistics.quantiles(self.delays, n=10)[-1] if len(self.delays) > 1 else nan
        return [
            f"{self.found / said if said else nan:.3f}",
            f"{self.found / self.leaks if self.leaks else nan:.3f}",
            f"{statistics.median(self.delays or [nan]):.1f} min",
            f"{latest:.1f} min",
        ]

    def row(self, name: str) -> list[str]:
        """A row of the table under `HEAD`."""
        nan = float("nan")
        return [
            name,
            *self.cells(),
            size(statistics.median(self.lost or [nan])),
            f"{self.healthy_false / self.healthy_days if self.healthy_days else nan:.2f}",
        ]


HEAD = (
    "detector | precision | recall | median delay | delay of nine in ten | memory lost before detection,"
    " median | false alarms per healthy trainer-day"
)


def _names(alert: Alert, truth: dict[str, Any]) -> bool:
    return (
        alert.get("kind", "leak") == truth.get("kind", "leak")
        and alert.get("resource") == truth["resource"]
        and truth["component"] in (None, alert.get("component"))
        and truth.get("instance") in (None, alert.get("instance"))
    )


def _counts(alert: Alert, scenario: Scenario) -> bool:
    """Of a healthy trainer every alert is a false one; of another, whatever calls itself a leak may be."""
    sick = any(truth.get("instance") in (None, alert.get("instance")) for truth in scenario.truth)
    return not sick or alert.get("kind", "leak") == "leak"


def _resident(scenario: Scenario, truth: dict[str, Any]) -> list[float | None] | None:
    role = truth["component"] or "trainer"
    for name, labels, values in scenario.parsed():
        if (
            name == "trainer_process_resident_memory_bytes"
            and labels["role"] == role
            and truth.get("instance") in (None, labels.get("instance"))
        ):
            return values
    return None


def _lost(scenario: Scenario, truth: dict[str, Any], minute: float) -> float:
    """Bytes by which resident memory grew from the onset to `minute`, a buffer's fill included."""
    values = _resident(scenario, truth) or []
    known = [value for value in values if value is not None]
    if not known:
        return 0.0
    # Of a scrape that was missed, that of the one before it.
    levels = list(accumulate(values, lambda before, now: before if now is None else now, initial=known[0]))
    at = [min(int(m * 60 / scenario.scrape_seconds), len(values) - 1) for m in (truth["onset_min"], minute)]
    return max(levels[at[1] + 1] - levels[at[0] + 1], 0.0)


def judge(scenario: Scenario, firing: Firing, scores: dict[str, Score]) -> None:
    """Add a scenario to the scores of all detectors.

    An alert is right when it names a leak that has begun; a false one counts once for what it names.
    """
    by_detector: dict[str, list[tuple[int, Alert]]] = {name: [] for name in scores}
    for minute, alerts in sorted(firing.items()):
        for alert in alerts:
            name = COMPARED.get(alert["alertname"], OURS)
            if name in by_detector:
                by_detector[name].append((minute, alert))
    for name, score in scores.items():
        found, false = _sort(scenario, by_detector[name])
        score.found += len(found)
        score.false += len(false)
        score.leaks += len(scenario.truth)
        if scenario.healthy:
            score.healthy_false += len(false)
            score.healthy_days += scenario.trainer_days
        end = scenario.scrapes * scenario.scrape_seconds / 60
        for number, truth in enumerate(scenario.truth):
            until = found.get(number, end)
            if number in found:
                score.delays.append(until - truth["onset_min"])
            if truth["resource"] == "memory":
                score.lost.append(_lost(scenario, truth, until))
        missed = [t for i, t in enumerate(scenario.truth) if i not in found]
        score.notes += [f"{scenario.id}: missed {t['resource']} ({t['component'] or 'any'})" for t in missed]
        score.notes += [f"{scenario.id}: false {what} at minute {when}" for what, when in false.items()]


def _sort(scenario: Scenario, alerts: Iterable[tuple[int, Alert]]) -> tuple[dict[int, float], dict[str, int]]:
    """The first minute of each leak found, and of each false alarm."""
    found: dict[int, float] = {}
    false: dict[str, int] = {}
    for minute, alert in alerts:
        right = [i for i, t in enumerate(scenario.truth) if _names(alert, t) and minute >= t["onset_min"]]
        for i in right:
            found.setdefault(i, minute)
        if not right and _counts(alert, scenario):
            what = f"{alert['alertname']} {alert.get('resource')} ({alert.get('component')}) of "
            what += str(alert.get("instance"))
            false.setdefault(what, minute)
    return found, false
