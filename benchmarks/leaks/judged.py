"""The series that a trainer's own judge would have exported in a scenario, having seen nothing later.

`python -m benchmarks.leaks.judged FILE` prints a JSON object: selector of a series -> a value for each
scrape, null where there is no sample.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.leaks.judge import Firing
from benchmarks.leaks.scenario import Scenario, load
from heapwatch.collectors.readings import Readings
from heapwatch.judge.measured import STEP_SECONDS
from heapwatch.judge.trainer import Leak, TrainerJudge

_OF_JUDGES = ("trainer_leak", "trainer_judged_timestamp_seconds", "trainer_memory_verdict")
Series = dict[str, list[float | None]]


def leaks_of(scenario: Scenario) -> Iterator[tuple[str, list[tuple[Leak, ...] | None]]]:
    """Each trainer by its instance ("" for the only one), and what leaked at each scrape; None if missed."""
    trainers: dict[str, list[tuple[str, dict[str, str], list[float | None]]]] = defaultdict(list)
    for name, labels, values in scenario.parsed():
        trainers[labels.pop("instance", "")].append((name, labels, values))
    for instance, series in trainers.items():
        yield instance, [*_judged(series, scenario.scrapes, scenario.scrape_seconds)]


def _judged(
    series: list[tuple[str, dict[str, str], list[float | None]]], scrapes: int, scrape_seconds: int
) -> Iterator[tuple[Leak, ...] | None]:
    judge, started = TrainerJudge(), None
    leaks: tuple[Leak, ...] = ()
    for scrape in range(scrapes):
        now = float(scrape * scrape_seconds)
        samples = [
            (name, labels, value)
            for name, labels, values in series
            if scrape < len(values) and (value := values[scrape]) is not None
        ]
        if not samples:
            yield None
            continue
        readings = Readings.of(samples)
        start = readings.value("process_start_time_seconds")
        if started is not None and start is not None and start > started:
            judge, leaks = TrainerJudge(), ()  # another process
        started = start if start is not None else started
        if judge.is_due(now):
            leaks = judge.observe(now, readings.sample(now))
        yield leaks


def judged(scenario: Scenario) -> Series:
    """The series by selector."""
    found: Series = {}
    for instance, scrapes in leaks_of(scenario):
        own = f'instance="{instance}",' if instance else ""
        missing: list[float | None] = [None] * scenario.scrapes
        timestamp = found.setdefault(f"trainer_judged_timestamp_seconds{{{own[:-1]}}}", missing.copy())
        for scrape, leaks in enumerate(scrapes):
            if leaks is None:
                continue
            now = scrape * scenario.scrape_seconds
            timestamp[scrape] = now - now % STEP_SECONDS
            for leak in leaks:
                resource, component = leak.component
                labels = f'{own}resource="{resource}",component="{component}",reason="{leak.reason}"'
                values = found.setdefault(f"trainer_leak{{{labels}}}", missing.copy())
                values[scrape] = leak.per_minute / 60
    return found


def with_judge(scenario: Scenario) -> Scenario:
    """The scenario with the series of the trainers' judges, in place of those that it may have."""
    others = {
        selector: values
        for selector, values in scenario.series.items()
        if selector.partition("{")[0] not in _OF_JUDGES
    }
    return replace(scenario, series=others | judged(scenario))


def firing(scenario: Scenario) -> Firing:
    """The alerts that the leaks would be, each minute, without Prometheus."""
    alerts: Firing = {}
    for instance, scrapes in leaks_of(scenario):
        for scrape in range(0, len(scrapes), 60 // scenario.scrape_seconds):
            for leak in scrapes[scrape] or ():
                resource, component = leak.component
                kind = "growth" if leak.reason == "retained" else "leak"
                alert = {"alertname": "TrainerLeak", "kind": kind, "instance": instance or scenario.id}
                minute = scrape * scenario.scrape_seconds // 60
                alerts.setdefault(minute, []).append(alert | {"resource": resource, "component": component})
    return alerts


if __name__ == "__main__":
    print(json.dumps(judged(load(Path(sys.argv[1])))))
