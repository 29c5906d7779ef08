"""The definition of a leak as `heapwatch.analysis` states it, on a scenario: no Prometheus, and seconds."""

from __future__ import annotations

import math

from benchmarks.leaks.replay import Firing
from benchmarks.leaks.scenario import LABEL, Scenario
from heapwatch.analysis.judge import judge
from heapwatch.analysis.leak import MEMORY
from heapwatch.analysis.observed import Series, observed
from heapwatch.analysis.readings import Component
from heapwatch.analysis.timeline import Samples, Values, steps


def firing_in_python(scenario: Scenario) -> Firing:
    """Look once a minute, as `replay` does."""
    evaluations = scenario.scrapes * scenario.scrape_seconds * steps(1) // 60
    firing: Firing = {}
    for instance, series in series_of(scenario).items():
        verdicts = judge(observed(series, 0.0, evaluations))
        alerts: list[tuple[str, Component, Values]] = [
            *(("leak", component, values) for component, values in verdicts.leaks.items()),
            *(("leak", component, values) for component, values in verdicts.past_bound.items()),
            ("growth", MEMORY, verdicts.retained),
        ]
        for kind, component, values in alerts:
            alert = {"alertname": "Python", "kind": kind, "instance": instance or scenario.id}
            alert |= {"resource": component.resource, "component": component.name}
            for minute, value in enumerate(values[:: steps(1)]):
                if value is not None:
                    firing.setdefault(minute, []).append(alert)
    return firing


def series_of(scenario: Scenario) -> dict[str, dict[Series, Samples]]:
    """The samples of each trainer, by instance; empty for the only one."""
    trainers: dict[str, dict[Series, Samples]] = {}
    for selector, values in scenario.series.items():
        labels = dict(LABEL.findall(selector))
        instance = labels.pop("instance", "")
        series = Series(selector.partition("{")[0], tuple(sorted(labels.items())))
        trainers.setdefault(instance, {})[series] = [
            (number * scenario.scrape_seconds, value)
            for number, value in enumerate(values)
            if value is not None and not math.isnan(value)
        ]
    return trainers
