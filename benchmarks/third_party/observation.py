"""What was seen of one run, as it is stored, and what is wrong with it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.third_party.catalog import LEAK_MINUTES, Trainer

# Lines at INFO of a healthy process: where it serves, that a stack came, its verdict, and the one at its end.
MOST_NOTICES = 4


@dataclass
class ObservedAlert:
    """An alert that fired, with the minutes since the trainer began to serve metrics.

    Attributes:
        first: minute at which it was first seen firing.
        labels: as Prometheus has them.
        named: minute at which its labels or annotations named the leak; None if they never did.

    """

    first: float
    labels: dict[str, str]
    named: float | None = None

    def __str__(self) -> str:
        labels = self.labels
        what = f"{labels.get('resource', '?')} ({labels.get('component', '?')})"
        return f"{labels['alertname']} {labels.get('severity', '')}, {what}, {self.first:.1f} min"


@dataclass
class Observation:
    """One trainer's run.

    Attributes:
        minutes: from the first answer of its endpoint to its end.
        ready: seconds from its start to that answer; None if it never came.
        served: addresses that answered.
        scraped: those of them that Prometheus scraped.
        alerts: that fired on any of them.
        explained: minute at which `/explain` named the leak.
        log: lines of the logger heapwatch at WARNING and above.
        notices: its lines at INFO.
        tracebacks: last lines of the tracebacks in the trainer's output.
        exit_code: None where it was ended after it had shown what it should.
        memory: resident bytes at the first scrape and at the last.
        day: on which it ran, such as 2026-11-22, UTC.

    """

    name: str
    leaking: bool
    minutes: float = 0.0
    ready: float | None = None
    served: list[str] = field(default_factory=list)
    scraped: list[str] = field(default_factory=list)
    alerts: list[ObservedAlert] = field(default_factory=list)
    explained: float | None = None
    log: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)
    exit_code: int | None = None
    memory: tuple[float, float] = (0.0, 0.0)
    day: str = ""

    @property
    def growth(self) -> float:
        """Resident bytes gained per minute."""
        first, last = self.memory
        return (last - first) / self.minutes if self.minutes else 0.0

    @property
    def reported(self) -> float | None:
        """Minute at which an alert first said that something leaks."""
        return min((alert.first for alert in self.alerts if alert.labels.get("kind") == "leak"), default=None)

    @property
    def named(self) -> float | None:
        """Minute at which a leak alert, or `/explain`, first named what leaks."""
        times = [alert.named for alert in self.alerts if alert.labels.get("kind") == "leak"]
        return min((time for time in [*times, self.explained] if time is not None), default=None)

    @property
    def label(self) -> str:
        """`NAME-leaking` or `NAME-healthy`."""
        return f"{self.name}-{'leaking' if self.leaking else 'healthy'}"

    def problems(self, trainer: Trainer) -> list[str]:
        """Everything that must not be, in words: of any run, and of a healthy or of a leaking one."""
        wrong = [f"port: Prometheus did not scrape {one}" for one in sorted({*self.served} - {*self.scraped})]
        if len(self.served) < trainer.endpoints:
            wrong = [f"port: {len(self.served)} of {trainer.endpoints} processes served metrics"]
        wrong += [f"traceback: {line}" for line in self.tracebacks]
        if self.exit_code not in (0, None):
            wrong.append(f"exit code {self.exit_code}")
        if not self.leaking:
            wrong += [f"alert: {alert}" for alert in self.alerts] + [f"log: {line}" for line in self.log]
            if len(self.notices) > MOST_NOTICES * trainer.endpoints:
                wrong.append(f"log: {len(self.notices)} lines of level INFO, the last: {self.notices[-1]}")
            return wrong
        for what, when in (("reported", self.reported), ("named", self.named)):
            if when is None:
                wrong.append(f"leak not {what} in {self.minutes:.0f} min")
            elif when > LEAK_MINUTES:
                wrong.append(f"leak {what} after {when:.1f} min, {LEAK_MINUTES:.0f} allowed")
        return wrong

    def save(self, folder: Path) -> None:
        """Write it under its label."""
        text = json.dumps(asdict(self), indent=2) + "\n"
        (folder / f"{self.label}.json").write_text(text, encoding="utf-8")


def load(path: Path) -> Observation:
    stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    stored["alerts"] = [ObservedAlert(**alert) for alert in stored["alerts"]]
    stored["memory"] = tuple(stored["memory"])
    return Observation(**stored)
