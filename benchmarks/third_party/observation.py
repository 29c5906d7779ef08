"""What was seen of one run, as the judge reads it and as it is stored."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any


@dataclass
class ObservedAlert:
    """An alert that fired, with the minutes since the trainer began to serve metrics.

    Attributes:
        first: minute at which it was first seen firing.
        labels: as Prometheus has them.
        annotations: as they were when it named the leak, else when it was first seen.
        named: minute at which its labels or annotations named the leak; None if they never did.
        notified: whether Alertmanager sent it on.

    """

    first: float
    labels: dict[str, str]
    annotations: dict[str, str]
    named: float | None = None
    notified: bool = False

    @property
    def text(self) -> str:
        """Everything a person reads of it."""
        return " ".join([*self.labels.values(), *self.annotations.values()])

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
        explained: minute at which `/explain` named the leak, and what it said.
        log: lines of the logger heapwatch at WARNING and above.
        notices: its lines at INFO.
        tracebacks: last lines of the tracebacks in the trainer's output.
        exit_code: None where it was ended after it had shown what it should.
        memory: resident bytes at the first scrape and at the last.
        day: on which it ran, such as 2026-11-22, UTC.

    """

    name: str
    leaking: bool
    versions: str
    minutes: float = 0.0
    ready: float | None = None
    served: list[str] = field(default_factory=list)
    scraped: list[str] = field(default_factory=list)
    alerts: list[ObservedAlert] = field(default_factory=list)
    explained: float | None = None
    explanation: str = ""
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

    def save(self, folder: Path) -> None:
        """Write it as `NAME-leaking.json` or `NAME-healthy.json`."""
        path = folder / f"{self.name}-{'leaking' if self.leaking else 'healthy'}.json"
        path.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")


def load(path: Path) -> Observation:
    """Read what `save` wrote."""
    stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    stored["alerts"] = [ObservedAlert(**alert) for alert in stored["alerts"]]
    stored["memory"] = tuple(stored["memory"])
    written = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
    stored.setdefault("day", written.date().isoformat())
    return Observation(**stored)
