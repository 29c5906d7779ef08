"""The monitor's messages about one trainer: one line per sample, and each alert when it changes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from heapwatch.explain.findings import labelled
from heapwatch.judge.component import BYTES, GROWN, MEMORY, Component
from heapwatch.judge.limits import BODIES, SEVERITIES, ExceededLimit, Limits, threshold_alert
from heapwatch.judge.verdict import SERIOUS
from heapwatch.text.numbers import duration, megabytes

REPEAT_SECONDS = 600.0

_ENDED = {
    "threshold": "is below its limit",
    "growth": "grows no faster than its limit",
    "leak": "no longer leaks",
    "graphs": "lets go of autograd graphs again",
}
_BODY_TYPES = ("static", "dynamic", "terrain", "agent", "unknown")
_AMONG_BODY_TYPES = ("_bodies", "_agents")  # how the names of such entities end


@dataclass(frozen=True)
class Sample:
    """`/performance_status` of one trainer at one time; `problem` says why there is none."""

    instance: str
    time: float
    status: Mapping[str, Any] | None = None
    problem: str = ""


@dataclass(frozen=True)
class Message:
    """One message about a trainer; a `heading` begins with the time."""

    time: float
    instance: str
    text: str
    heading: bool = False

    @property
    def clock(self) -> str:
        """The local time of day."""
        return time.strftime("%H:%M:%S", time.localtime(self.time))


class Reporter:
    """Tells what the samples of one trainer show, and remembers the active alerts.

    An alert is identified by kind and component, never by value: it is printed when it begins, when its
    severity changes, every REPEAT_SECONDS while it is active, and when it ends. A level at its limit does not
    flap, as an alert ends, or becomes a milder one, when two samples have shown so.

    Args:
        limits: of memory and of all bodies, in place of those that the trainer has for them.

    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or {}
        # What it is about, and its last severity, and when that was.
        self._printed: dict[tuple[str, str, Component], tuple[str, float]] = {}
        self._before: list[ExceededLimit] = []
        self._has_sample = False
        self._problem = ""
        self._stalled = False
        self._verdict = ""
        self.alerts: list[ExceededLimit] = []

    @property
    def severity(self) -> str:
        """The worst active alert: `ok`, a severity, or `unknown` without a sample."""
        if self._problem or not self._has_sample:
            return "unknown"
        worst = max((alert.severity for alert in self.alerts), key=SEVERITIES.index, default="ok")
        serious = self._stalled or self._verdict in SERIOUS
        return "critical" if serious and worst in ("ok", "warning") else worst

    def report(self, sample: Sample) -> list[Message]:
        """Return the messages about a sample.

        Raises:
            LookupError, TypeError, ValueError, AttributeError, ArithmeticError: its status is none.

        """
        if sample.status is None:
            known, self._problem = self._problem, sample.problem
            return [] if known == sample.problem else [_heading(sample, f"UNKNOWN: {sample.problem}")]
        status, leaks = sample.status, sample.status.get("leaks", {})
        self._before, self.alerts = self.alerts, sorted(self._exceeded(status), key=_rank, reverse=True)
        headings = ["answers again"] if self._problem else []
        headings += [summary(status), *self._progress(status)]
        texts = [body_types(status.get("body_types", {}))]
        self._verdict = leaks.get("verdict", "")
        if self._verdict:
            texts.append(labelled(leaks["verdict"], leaks.get("message", "")))
        texts += self._news(sample.time)
        self._has_sample, self._problem = True, ""
        lines = [Message(sample.time, sample.instance, text) for text in texts if text]
        return [*(_heading(sample, text) for text in headings), *lines]

    def _exceeded(self, status: Mapping[str, Any]) -> Iterator[ExceededLimit]:
        """The alerts of the trainer, and of the limits given here."""
        for document in status["alerts"]:
            alert = ExceededLimit(**document)
            if alert.kind != "threshold" or _component(alert) not in self._limits:
                yield alert
        for component, limits in self._limits.items():
            level = _level(status, component)
            own = None if level is None else threshold_alert(component, level, limits)
            if own is not None:
                yield own

    def _progress(self, status: Mapping[str, Any]) -> Iterator[str]:
        known, self._stalled = self._stalled, status["training"] == "stalled"
        if self._stalled and not known:
            age = status["performance"]["seconds_since_progress"]
            yield f"STALLED: training has made no progress for {duration(age)}"
        elif known and not self._stalled:
            yield "ENDED: training makes progress again"

    def _news(self, now: float) -> Iterator[str]:
        standing: dict[tuple[str, str, Component], ExceededLimit] = {}
        for alert in sorted([*self.alerts, *self._before], key=_rank, reverse=True):
            standing.setdefault((alert.kind, alert.per, _component(alert)), alert)
        for key, alert in standing.items():
            severity, printed_at = self._printed.get(key, ("", 0.0))
            if severity != alert.severity or now - printed_at >= REPEAT_SECONDS:
                self._printed[key] = alert.severity, now
                yield described(alert)
        for key in [key for key in self._printed if key not in standing]:
            del self._printed[key]
            kind, _, component = key
            yield f"ENDED: {named(component)} {_ENDED[kind]}"


def summary(status: Mapping[str, Any]) -> str:
    """Return the line of a sample; unknown values are left out."""
    performance, entities = status.get("performance", {}), status.get("entities", {})
    memory = performance.get("memory_mb")
    counts = [
        ("Bodies", entities.get("world_bodies")),
        *((title(name), count) for name, count in entities.items() if not name.endswith(_AMONG_BODY_TYPES)),
        ("Step", performance.get("step_count")),
    ]
    known = [] if memory is None else [f"Memory={megabytes(1e6 * memory)}"]
    known += [f"{name}={count:.0f}" for name, count in counts if count is not None]
    return ", ".join(known) or "nothing to show"


def body_types(bodies: Mapping[str, float]) -> str:
    """Return the line of the body types, in a fixed order; empty if no bodies are watched."""
    ordered = [name for name in _BODY_TYPES if name in bodies]
    ordered += [name for name in bodies if name not in _BODY_TYPES]
    counts = ", ".join(f"{name.capitalize()}={bodies[name]:.0f}" for name in ordered)
    return counts and f"Body types: {counts}"


def described(alert: ExceededLimit) -> str:
    """Return the line of an alert with its value and limit."""
    name, severity = named(_component(alert)), alert.severity.upper()
    value, limit = _amount(alert.resource, alert.value), _amount(alert.resource, alert.limit)
    if alert.kind == "graphs":
        # An estimate from a sample need not be whole.
        kept = f"{name}: {alert.value:.0f} tensors keep their autograd graphs"
        return f"{severity}: {kept}; store tensor.detach().cpu(), or .item() for a number"
    if alert.kind == "leak" and not alert.limit:
        return f"{severity}: {name} leaks: it grows by {value}/min and does not slow down"
    if alert.kind == "leak":
        return f"{severity}: {name} holds {value}, past its bound ({limit})"
    if alert.kind == "growth":
        what = "BODY GROWTH ALERT" if alert.resource == "bodies" else severity
        per = alert.per.replace("minute", "min") or "min"  # a trainer of before knows no other period
        return f"{what}: {name} grows by {value}/{per} (limit {limit}/{per})"
    return f"{severity}: {name} = {value} (>= {limit})"


def _rank(alert: ExceededLimit) -> int:
    return SEVERITIES.index(alert.severity)


def _component(alert: ExceededLimit) -> Component:
    return Component(alert.resource, alert.component)


def _level(status: Mapping[str, Any], component: Component) -> float | None:
    """The level of the memory of the trainer, or of all bodies; None if it is not known."""
    where: dict[Component, float | None] = {
        MEMORY: status.get("memory", {}).get("resident_bytes", {}).get("trainer"),
        BODIES: status.get("entities", {}).get("world_bodies"),
    }
    return where[component]


def _heading(sample: Sample, text: str) -> Message:
    return Message(sample.time, sample.instance, text, heading=True)


def named(component: Component) -> str:
    """The name of a component in a line."""
    if component.resource == "bodies":
        return "world_bodies" if component.name == "all" else f"{component.name}_bodies"
    if component.resource == "entities":
        return component.name
    if component.resource == "memory":
        return {"trainer": "memory", "all": "memory with workers", GROWN.name: "memory since the start"}.get(
            component.name, f"{component.name} memory"
        )
    return f"{component.resource} {component.name}".strip()


def _amount(resource: str, value: float) -> str:
    if resource in BYTES:
        return megabytes(value)
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.1f}"


def title(name: str) -> str:
    """The name of a level as a heading, without `_sources`."""
    return name.removesuffix("_sources").replace("_", " ").title().replace(" ", "")
