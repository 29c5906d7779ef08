"""The monitor's messages about one trainer: one line per sample, and each alert when it changes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from heapwatch.analysis.judge import LiveVerdicts
from heapwatch.analysis.limits import growth_limits_of, limits_of
from heapwatch.analysis.readings import (
    GROWN,
    SEVERITIES,
    Component,
    ExceededLimit,
    Readings,
    growth_alert,
    limit_of,
    threshold_alert,
)
from heapwatch.analysis.timeline import GrowthRates
from heapwatch.analysis.verdict import SERIOUS, Word
from heapwatch.cli.sources import Sample
from heapwatch.explain.findings import labelled
from heapwatch.explain.received import exposed_explanation, verdict_of

REPEAT_SECONDS = 600.0
HYSTERESIS = 0.95  # an alert ends below this share of its limit, so that a level at its limit does not flap
BYTES = ("memory", "gpu_memory", "object_size")

_ENDED = {
    "growth": "grows no faster than its limit",
    "leak": "no longer leaks",
    "graphs": "lets go of autograd graphs again",
}
_BODY_TYPES = ("static", "dynamic", "terrain", "agent", "unknown")


@dataclass(frozen=True)
class Thresholds:
    """The limits of the command line, by severity; the rest comes from each trainer, or the defaults.

    A `profile` overrides what trainers choose and declare.
    """

    profile: str | None = None
    given: Mapping[Component, Mapping[str, float]] = field(default_factory=dict)

    def limits(self, readings: Readings) -> dict[Component, dict[str, float]]:
        """Return the limits of levels for a trainer."""
        merged = limits_of(readings, self.profile)
        for component, limits in self.given.items():
            merged[component] = merged.get(component, {}) | dict(limits)
        return merged


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
    """Judges the samples of one trainer, and remembers the active alerts.

    An alert is identified by kind and component, never by value: it is printed when it begins, when its
    severity changes, every REPEAT_SECONDS while it is active, and when it ends.
    """

    def __init__(self, thresholds: Thresholds, *, interval: float) -> None:
        self._thresholds = thresholds
        self._history: GrowthRates[Component] = GrowthRates(window_seconds=max(600.0, 20 * interval))
        self._live = LiveVerdicts()
        self._printed: dict[tuple[str, Component], tuple[str, float]] = {}  # severity, and when
        self._sampled_at: float | None = None
        self._started: float | None = None
        self._problem = ""
        self._stalled = False
        self.alerts: list[ExceededLimit] = []
        self.verdict: Word | None = None

    @property
    def severity(self) -> str:
        """The worst active alert: `ok`, a severity, or `unknown` without a sample."""
        if self._problem or self._sampled_at is None:
            return "unknown"
        worst = max((alert.severity for alert in self.alerts), key=SEVERITIES.index, default="ok")
        serious = self._stalled or self.verdict in SERIOUS
        return "critical" if serious and worst in ("ok", "warning") else worst

    def report(self, sample: Sample) -> list[Message]:
        """Return the messages about a sample."""
        if sample.readings is None:
            known, self._problem = self._problem, sample.problem
            return [] if known == sample.problem else [_heading(sample, f"UNKNOWN: {sample.problem}")]
        back = [_heading(sample, "answers again")] if self._problem else []
        self._problem = ""
        self._sampled_at = sample.time
        messages = [*back, *self._restarted(sample, sample.readings)]
        messages.append(_heading(sample, summary(sample.readings)))
        messages += self._progress(sample, sample.readings)
        types = body_types(sample.readings)
        if types:
            messages.append(Message(sample.time, sample.instance, types))
        levels = sample.readings.levels()
        self._history.observe(sample.time, levels)
        judged = levels | sample.readings.grown()
        self._live.observe(sample.time, sample.readings)
        messages += self._verdict(sample, sample.readings)
        self.alerts = sorted(
            [*self._judge(sample.readings, judged), *self._live.verdicts().alerts()],
            key=lambda alert: SEVERITIES.index(alert.severity),
            reverse=True,
        )
        news = self._news(sample.time, judged)
        return messages + [Message(sample.time, sample.instance, text) for text in news]

    def _verdict(self, sample: Sample, readings: Readings) -> Iterator[Message]:
        explanation, verdicts = exposed_explanation(readings), self._live.verdicts()
        if explanation is None and not verdicts.seen:
            self.verdict = None
            return
        word, text = verdict_of(explanation, verdicts)
        self.verdict = word
        yield Message(sample.time, sample.instance, labelled(word, text))

    def _progress(self, sample: Sample, readings: Readings) -> Iterator[Message]:
        known, self._stalled = self._stalled, readings.training(sample.time) == "stalled"
        if self._stalled and not known:
            age = readings.seconds_since_progress(sample.time) or 0.0
            yield _heading(sample, f"STALLED: training has made no progress for {age:.0f} s")
        elif known and not self._stalled:
            yield _heading(sample, "ENDED: training makes progress again")

    def _restarted(self, sample: Sample, readings: Readings) -> Iterator[Message]:
        started = readings.value("process_start_time_seconds")
        if self._started is not None and started is not None and started != self._started:
            self._history.clear()
            yield _heading(sample, "the trainer was restarted: growth is measured from its new start")
        self._started = started if started is not None else self._started

    def _judge(self, readings: Readings, levels: dict[Component, float]) -> Iterator[ExceededLimit]:
        limits = self._thresholds.limits(readings)
        growth_limits = growth_limits_of(readings, self._thresholds.profile)
        for component, level in levels.items():
            own = limit_of(component, limits) or {}
            threshold = threshold_alert(component, level, self._eased(("threshold", component), own))
            if threshold:
                yield replace(threshold, limit=own[threshold.severity])
            rate_limit = limit_of(component, growth_limits)
            if rate_limit is not None:
                eased = self._eased(("growth", component), {"warning": rate_limit})["warning"]
                growth = growth_alert(component, self._history.per_minute(component), eased)
                if growth:
                    yield replace(growth, limit=rate_limit)

    def _eased(self, key: tuple[str, Component], limits: Mapping[str, float]) -> dict[str, float]:
        printed = self._printed.get(key)
        return {
            severity: limit * HYSTERESIS if printed and severity == printed[0] else limit
            for severity, limit in limits.items()
        }

    def _news(self, now: float, levels: dict[Component, float]) -> Iterator[str]:
        standing = {(alert.kind, Component(alert.resource, alert.component)): alert for alert in self.alerts}
        for key, alert in standing.items():
            severity, printed_at = self._printed.get(key, ("", 0.0))
            if severity != alert.severity or now - printed_at >= REPEAT_SECONDS:
                self._printed[key] = alert.severity, now
                yield described(alert, self._history.rise(key[1]))
        for key in [key for key in self._printed if key not in standing]:
            del self._printed[key]
            kind, component = key
            if component not in levels:
                ended = "is not reported any more"
            elif kind == "threshold":
                ended = f"is back at {_amount(component.resource, levels[component])}"
            else:
                ended = _ENDED[kind]
            yield f"ENDED: {named(component)} {ended}"


def summary(readings: Readings) -> str:
    """Return the line of a sample; unknown values are left out."""
    resident = readings.value("trainer_process_resident_memory_bytes", role="trainer")
    bodies = readings.by("trainer_bodies", "type")
    entities = readings.by("trainer_entities", "type")
    steps = readings.value("trainer_progress_total", unit="step")
    fields = [
        ("Memory", None if resident is None else f"{resident / 1e6:.1f}MB"),
        ("Bodies", f"{sum(bodies.values()):.0f}" if bodies else None),
        # Agents are listed among the body types.
        *((title(name), f"{count:.0f}") for name, count in entities.items() if not name.endswith("_agents")),
        ("Step", None if steps is None else f"{steps:.0f}"),
    ]
    return ", ".join(f"{name}={value}" for name, value in fields if value is not None) or "nothing to show"


def body_types(readings: Readings) -> str:
    """Return the line of the body types, in a fixed order; empty if no bodies are watched."""
    bodies = readings.by("trainer_bodies", "type")
    ordered = [name for name in _BODY_TYPES if name in bodies]
    ordered += [name for name in bodies if name not in _BODY_TYPES]
    counts = ", ".join(f"{name.capitalize()}={bodies[name]:.0f}" for name in ordered)
    return counts and f"Body types: {counts}"


def described(alert: ExceededLimit, rise: float | None = None) -> str:
    """Return the line of an alert with its value and limit; for growth of bodies also the `rise` so far."""
    name = named(Component(alert.resource, alert.component))
    value, limit = _amount(alert.resource, alert.value), _amount(alert.resource, alert.limit)
    if alert.kind == "graphs":
        # An estimate from a sample need not be whole.
        kept = f"{name}: {alert.value:.0f} tensors keep their autograd graphs"
        return f"{alert.severity.upper()}: {kept}; store tensor.detach().cpu(), or .item() for a number"
    if alert.kind == "leak" and not alert.limit:
        return f"{alert.severity.upper()}: {name} leaks: it grows by {value}/min and does not slow down"
    if alert.kind == "leak":
        return f"{alert.severity.upper()}: {name} holds {value}, past its bound ({limit})"
    if alert.kind == "growth" and alert.resource == "bodies" and rise is not None:
        return f"BODY GROWTH ALERT: {name} {rise:+.0f} ({value}/min, limit {limit}/min)"
    if alert.kind == "growth":
        return f"{alert.severity.upper()}: {name} grows by {value}/min (limit {limit}/min)"
    return f"{alert.severity.upper()}: {name} = {value} (>= {limit})"


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
        return f"{value / 1e6:.1f}MB"
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.1f}"


def title(name: str) -> str:
    """The name of a level as a heading, without `_sources`."""
    return name.removesuffix("_sources").replace("_", " ").title().replace(" ", "")
