"""The series that a trainer's own judge would have exported in a scenario, having seen nothing later.

`python -m benchmarks.leaks.judged FILE` prints a JSON object: selector of a series -> a value for each
scrape, null where there is no sample.
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from prometheus_client import Metric

from benchmarks.leaks.judge import Firing
from benchmarks.leaks.scenario import Scenario, load
from heapwatch.collectors.readings import Readings
from heapwatch.explain.attribution import explain
from heapwatch.explain.findings import Explanation
from heapwatch.explain.levels import Declared, with_judged_levels
from heapwatch.judge.component import MEMORY, WORKERS
from heapwatch.judge.measured import STEP_SECONDS
from heapwatch.judge.memory import MemoryGrowth, MemoryLevels
from heapwatch.judge.trainer import Leak, TrainerJudge

_OF_JUDGES = (
    "trainer_leak",
    "trainer_judged_timestamp_seconds",
    "trainer_memory_verdict",
    "trainer_memory_time_to_limit_seconds",
)
Series = dict[str, list[float | None]]
Parsed = list[tuple[str, dict[str, str], list[float | None]]]


def trainers_of(scenario: Scenario) -> Iterator[tuple[str, Iterator[tuple[float, Readings] | None]]]:
    """Each trainer by its instance ("" for the only one), seconds and readings of its scrapes."""
    trainers: dict[str, Parsed] = defaultdict(list)
    for name, labels, values in scenario.parsed():
        trainers[labels.pop("instance", "")].append((name, labels, values))
    for instance, series in trainers.items():
        yield instance, _scraped(scenario, series)


def _scraped(scenario: Scenario, series: Parsed) -> Iterator[tuple[float, Readings] | None]:
    for scrape in range(scenario.scrapes):
        family = Metric("scraped", "", "unknown")
        for name, labels, values in series:
            if scrape < len(values) and (value := values[scrape]) is not None:
                family.add_sample(name, labels, value)
        yield (float(scrape * scenario.scrape_seconds), Readings([family])) if family.samples else None


class Judged:
    """What a trainer without a search for objects says of itself, scrape after scrape."""

    def __init__(self) -> None:
        self._judge, self._memory, self._began = TrainerJudge(), MemoryLevels(math.inf, 0.0), 0.0
        self._start: float | None = None

    def leaks(self, now: float, readings: Readings) -> tuple[Leak, ...]:
        """What leaks; another start time is that of another process, which begins anew."""
        start = readings.value("process_start_time_seconds")
        if self._start is not None and start is not None and start > self._start:
            self._judge, self._memory, self._began = TrainerJudge(), MemoryLevels(math.inf, now), now
        self._start = self._start if start is None else start
        if self._judge.is_due(now):
            self._judge.observe(now, readings.sample(now))
        return self._judge.leaks

    def explanation(self, now: float, readings: Readings) -> Explanation:
        """The explanation, of levels alone."""
        leaks, levels = self.leaks(now, readings), readings.levels()
        memory = self._memory
        memory.limit = readings.value("trainer_memory_limit_bytes") or math.inf
        for series, component in ((memory.resident, MEMORY), (memory.workers, WORKERS)):
            if component in levels:
                series.add(now, levels[component])
        gpu = readings.by("trainer_gpu_memory_allocated_bytes", "device")
        if gpu:
            memory.gpu.add(now, sum(gpu.values()))
        growth = MemoryGrowth(memory, self._began, now, leaks)
        found = explain(growth, (), walked=False, searched=False)
        return with_judged_levels(found, self._judge, growth, Declared(to_fill=readings.sample(now).to_fill))


def judged(scenario: Scenario) -> Series:
    """The series by selector."""
    found: Series = {}
    missing: list[float | None] = [None] * scenario.scrapes
    for instance, scrapes in trainers_of(scenario):
        own = f'instance="{instance}",' if instance else ""
        trainer = Judged()
        for number, scrape in enumerate(scrapes):
            if scrape is None:
                continue
            now, readings = scrape
            explanation = trainer.explanation(now, readings)
            exported = {("trainer_judged_timestamp_seconds", ""): now - now % STEP_SECONDS}
            exported["trainer_memory_verdict", f'verdict="{explanation.verdict}"'] = 1.0
            for leak in explanation.leaks:
                resource, component = leak.component
                labels = f'resource="{resource}",component="{component}",reason="{leak.reason}"'
                exported["trainer_leak", labels] = leak.per_minute / 60
            if explanation.time_left is not None:
                resource = "gpu_memory" if explanation.ends_on_gpu else "memory"
                labels = f'bound="least",resource="{resource}"'
                exported["trainer_memory_time_to_limit_seconds", labels] = explanation.time_left.least
            for (name, labels), value in exported.items():
                selector = f"{name}{{{(own + labels).rstrip(',')}}}"
                found.setdefault(selector, missing.copy())[number] = value
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
    for instance, scrapes in trainers_of(scenario):
        trainer = Judged()
        for scrape in scrapes:
            if scrape is None:
                continue
            leaks, (minute, seconds) = trainer.leaks(*scrape), divmod(int(scrape[0]), 60)
            for leak in leaks if not seconds else ():
                resource, component = leak.component
                kind = "growth" if leak.reason == "retained" else "leak"
                alert = {"alertname": "TrainerLeak", "kind": kind, "instance": instance or scenario.id}
                alerts.setdefault(minute, []).append(alert | {"resource": resource, "component": component})
    return alerts


if __name__ == "__main__":
    print(json.dumps(judged(load(Path(sys.argv[1])))))
