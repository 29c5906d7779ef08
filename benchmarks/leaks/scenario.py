"""Labelled scenarios: what Prometheus saw of some trainers, and which leaked what since when."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.leaks.healthy import HABITS
from benchmarks.leaks.leaking import LEAKS
from benchmarks.leaks.trace import SCRAPE_SECONDS, Trace

LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass
class Scenario:
    """Series by selector, one value per scrape (None = missed), and the leaks in them."""

    id: str
    series: dict[str, list[float | None]]
    truth: list[dict[str, Any]] = field(default_factory=list)
    scrape_seconds: int = SCRAPE_SECONDS

    @property
    def healthy(self) -> bool:
        """Whether nothing leaks."""
        return not self.truth

    @property
    def scrapes(self) -> int:
        """How many scrapes the longest series has."""
        return max(len(values) for values in self.series.values())

    @property
    def trainer_days(self) -> float:
        """Days of training, of all trainers together."""
        instances = {dict(LABEL.findall(name)).get("instance") for name in self.series}
        return len(instances) * self.scrapes * self.scrape_seconds / 86400


def load(path: Path) -> Scenario:
    """Read a gzipped JSON scenario: `id`, `series`, `truth`, `scrape_seconds`."""
    with gzip.open(path, "rt") as file:
        doc = json.load(file)
    return Scenario(doc["id"], doc["series"], doc["truth"], doc["scrape_seconds"])


def save(scenario: Scenario, folder: Path) -> None:
    """Write a scenario as `load` reads it."""
    doc = {**vars(scenario), "healthy": scenario.healthy, "family": scenario.id.rpartition("-")[0]}
    with gzip.open(folder / f"{scenario.id}.json.gz", "wt") as file:
        json.dump(doc, file)


def _of(trace: Trace) -> dict[str, list[float | None]]:
    return {
        name: [None if np.isnan(value) else float(value) for value in values]
        for name, values in trace.series.items()
    }


def _habits(rng: np.random.Generator, many: int) -> list[str]:
    return [str(name) for name in rng.choice(sorted(HABITS), many, replace=False)]


def _healthy(rng: np.random.Generator, habit: str) -> Trace:
    """One habit to test, and one more beside it half of the time."""
    trace = Trace(rng)
    for name in dict.fromkeys([habit, *_habits(rng, int(rng.integers(0, 2)))]):
        HABITS[name](trace)
    trace.finish(gaps=rng.random() < 0.15)
    return trace


def _leaking(rng: np.random.Generator, leak: str) -> Trace:
    trace = Trace(rng)
    LEAKS[leak](trace)
    trace.finish(gaps=rng.random() < 0.15)
    return trace


def generate(seed: int, each: int = 2) -> Iterator[Scenario]:
    """Every family `each` times, and as many scenarios of several trainers behind one Prometheus."""
    for family, make in [*((h, _healthy) for h in HABITS), *((leak, _leaking) for leak in LEAKS)]:
        for number in range(each):
            rng = np.random.default_rng([seed, number, *family.encode()])
            trace = make(rng, family)
            prefix = "l" if trace.truth else "h"
            yield Scenario(f"{prefix}_{family}-{seed}.{number}", _of(trace), trace.truth)
    for number in range(each):
        yield _fleet(np.random.default_rng([seed, number]), f"l_fleet-{seed}.{number}")


def _fleet(rng: np.random.Generator, name: str) -> Scenario:
    """Five trainers, two of which leak."""
    scenario = Scenario(name, {})
    leaks = [str(leak) for leak in rng.choice(sorted(LEAKS), 2, replace=False)]
    traces = [_leaking(rng, leak) for leak in leaks] + [_healthy(rng, habit) for habit in _habits(rng, 3)]
    for rank, trace in enumerate(traces):
        instance = f"127.0.0.1:{7777 + rank}"
        scenario.truth += [{**truth, "instance": instance} for truth in trace.truth]
        for selector, values in _of(trace).items():
            metric, _, labels = selector.rstrip("}").partition("{")
            joined = ",".join(filter(None, [labels, f'instance="{instance}"']))
            scenario.series[f"{metric}{{{joined}}}"] = values
    return scenario
