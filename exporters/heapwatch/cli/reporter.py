"""The lines that the monitor prints about a trainer: one per sample, and each alert when it changes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
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
_AMONG_BODY_TYPES = ("_bodies", "_agents")  # suffixes of entities that the body types count already


class Reporter:
    """Turns the samples of a trainer into lines, and remembers the active alerts.

    Kind and component identify an alert, not its value. It is printed when it begins, when its severity
    changes, every REPEAT_SECONDS while it is active, and when it ends. Two samples in a row must show that an
    alert ended or became milder, so a level near its limit does not flap.

    Args:
        limits: for memory and all bodies; they replace the trainer's own limits.

    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or {}
        # The severity and time of the last message about each kind, period and component.
        self._printed: dict[tuple[str, str, Component], tuple[str, float]] = {}
        self._previous: list[ExceededLimit] = []
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

    def report(self, now: float, status: Mapping[str, Any]) -> list[str]:
        """Return the lines about a sample: its `/performance_status`, read at this Unix time in seconds.

        Raises:
            LookupError, TypeError, ValueError, AttributeError, ArithmeticError: the status is malformed.

        """
        leaks = status.get("leaks", {})
        self._previous, self.alerts = self.alerts, sorted(self._exceeded(status), key=_rank, reverse=True)
        headings = ["answers again"] if self._problem else []
        headings += [summary(status), *self._progress(status)]
        details = [body_types(status.get("body_types", {}))]
        self._verdict = leaks.get("verdict", "")
        if self._verdict:
            details.append(labelled(leaks["verdict"], leaks.get("message", "")))
        details += self._news(now)
        self._has_sample, self._problem = True, ""
        return [*(_heading(now, text) for text in headings), *map(indented, filter(None, details))]

    def report_problem(self, now: float, problem: str) -> list[str]:
        """Return the line that says why there is no sample; none if the problem is the same as before."""
        previous, self._problem = self._problem, problem
        return [] if previous == problem else [_heading(now, f"UNKNOWN: {problem}")]

    def _exceeded(self, status: Mapping[str, Any]) -> Iterator[ExceededLimit]:
        """Yield the alerts of the trainer, and those for the limits of this reporter."""
        for document in status["alerts"]:
            alert = ExceededLimit(**document)
            if alert.kind != "threshold" or _component(alert) not in self._limits:
                yield alert
        for component, limits in self._limits.items():
            level = _level(status, component)
            exceeded = None if level is None else threshold_alert(component, level, limits)
            if exceeded is not None:
                yield exceeded

    def _progress(self, status: Mapping[str, Any]) -> Iterator[str]:
        was_stalled, self._stalled = self._stalled, status["training"] == "stalled"
        if self._stalled and not was_stalled:
            age = status["performance"]["seconds_since_progress"]
            yield f"STALLED: training has made no progress for {duration(age)}"
        elif was_stalled and not self._stalled:
            yield "ENDED: training makes progress again"

    def _news(self, now: float) -> Iterator[str]:
        current: dict[tuple[str, str, Component], ExceededLimit] = {}
        for alert in sorted([*self.alerts, *self._previous], key=_rank, reverse=True):
            current.setdefault((alert.kind, alert.per, _component(alert)), alert)
        for key, alert in current.items():
            severity, printed_at = self._printed.get(key, ("", 0.0))
            if severity != alert.severity or now - printed_at >= REPEAT_SECONDS:
                self._printed[key] = alert.severity, now
                yield described(alert)
        for key in [key for key in self._printed if key not in current]:
            del self._printed[key]
            kind, _, component = key
            yield f"ENDED: {named(component)} {_ENDED[kind]}"


def summary(status: Mapping[str, Any]) -> str:
    """Return the line of a sample without unknown values."""
    performance, entities = status.get("performance", {}), status.get("entities", {})
    memory = performance.get("memory_mb")
    counts = [
        ("Bodies", entities.get("world_bodies")),
        *((title(name), count) for name, count in entities.items() if not name.endswith(_AMONG_BODY_TYPES)),
        ("Step", performance.get("step_count")),
    ]
    values = [] if memory is None else [f"Memory={megabytes(1e6 * memory)}"]
    values += [f"{name}={count:.0f}" for name, count in counts if count is not None]
    return ", ".join(values) or "nothing to show"


def body_types(bodies: Mapping[str, float]) -> str:
    """Return the line of the body types in a fixed order; empty if the trainer watches no bodies."""
    ordered = [name for name in _BODY_TYPES if name in bodies]
    ordered += [name for name in bodies if name not in _BODY_TYPES]
    counts = ", ".join(f"{name.capitalize()}={bodies[name]:.0f}" for name in ordered)
    return counts and f"Body types: {counts}"


def described(alert: ExceededLimit) -> str:
    """Return the line of an alert with its value and limit."""
    name, severity = named(_component(alert)), alert.severity.upper()
    value, limit = _amount(alert.resource, alert.value), _amount(alert.resource, alert.limit)
    if alert.kind == "graphs":
        # An estimate from a sample may have a fraction.
        text = f"{name}: {alert.value:.0f} tensors keep their autograd graphs"
        return f"{severity}: {text}; store tensor.detach().cpu(), or .item() for a number"
    if alert.kind == "leak" and not alert.limit:
        return f"{severity}: {name} leaks: it grows by {value}/min and does not slow down"
    if alert.kind == "leak":
        return f"{severity}: {name} holds {value}, past its bound ({limit})"
    if alert.kind == "growth":
        label = "BODY GROWTH ALERT" if alert.resource == "bodies" else severity
        unit = alert.per.replace("minute", "min") or "min"
        return f"{label}: {name} grows by {value}/{unit} (limit {limit}/{unit})"
    return f"{severity}: {name} = {value} (>= {limit})"


def _rank(alert: ExceededLimit) -> int:
    return SEVERITIES.index(alert.severity)


def _component(alert: ExceededLimit) -> Component:
    return Component(alert.resource, alert.component)


def _level(status: Mapping[str, Any], component: Component) -> float | None:
    """Return the trainer's memory in bytes, or its number of bodies; None if unknown."""
    levels: dict[Component, float | None] = {
        MEMORY: status.get("memory", {}).get("resident_bytes", {}).get("trainer"),
        BODIES: status.get("entities", {}).get("world_bodies"),
    }
    return levels[component]


def _heading(now: float, text: str) -> str:
    return f"{time.strftime('%H:%M:%S', time.localtime(now))}: {text}"


def indented(text: str) -> str:
    """Return a line below that of its sample."""
    return f"   {text}"


def named(component: Component) -> str:
    """Return the name of a component for a message."""
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
    """Return the name of a level as a title, without `_sources`."""
    return name.removesuffix("_sources").replace("_", " ").title().replace(" ", "")
