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

from benchmarks.leaks import healthy, leaking
from benchmarks.leaks.healthy import HABITS
from benchmarks.leaks.leaking import LEAKS
from benchmarks.leaks.trace import MINUTES, SCRAPE_SECONDS, Trace

LENGTHS = healthy.LENGTHS | leaking.LENGTHS
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
        instances = {labels.get("instance") for _, labels, _ in self.parsed()}
        return len(instances) * self.scrapes * self.scrape_seconds / 86400

    def parsed(self) -> Iterator[tuple[str, dict[str, str], list[float | None]]]:
        """Metric, labels and values of each series."""
        for selector, values in self.series.items():
            yield selector.partition("{")[0], dict(LABEL.findall(selector)), values


def load(path: Path) -> Scenario:
    """Read a gzipped JSON scenario: `id`, `series`, `truth`, `scrape_seconds`."""
    with gzip.open(path, "rt") as file:
        doc = json.load(file)
    return Scenario(doc["id"], doc["series"], doc["truth"], doc["scrape_seconds"])


def save(scenario: Scenario, folder: Path) -> None:
    doc = {**vars(scenario), "healthy": scenario.healthy, "family": scenario.id.rpartition("-")[0]}
    with gzip.open(folder / f"{scenario.id}.json.gz", "wt") as file:
        json.dump(doc, file)


def _of(trace: Trace) -> dict[str, list[float | None]]:
    return {
        name: [None if np.isnan(value) else float(value) for value in values]
        for name, values in trace.series.items()
    }


def _make(rng: np.random.Generator, family: str, scrape_seconds: int = SCRAPE_SECONDS) -> Trace:
    """A leak, or one healthy habit and one more beside it half of the time."""
    trace = Trace(rng, LENGTHS.get(family, MINUTES), scrape_seconds)
    if family in LEAKS:
        LEAKS[family](trace)
    else:
        beside = str(rng.choice(sorted(HABITS))) if rng.random() < 0.5 else family
        for name in dict.fromkeys([family, beside]):
            HABITS[name](trace)
    trace.finish(gaps=rng.random() < 0.15 and family not in LENGTHS)
    return trace


def generate(seed: int, each: int = 2) -> Iterator[Scenario]:
    """Every family `each` times, and as many scenarios of several trainers behind one Prometheus."""
    for kind, families in (("h", HABITS), ("l", LEAKS)):
        for family in families:
            for number in range(each):
                rng = np.random.default_rng([seed, number, *f"{kind}_{family}".encode()])
                trace = _make(rng, family, int(rng.choice([15, 15, 30])))
                name = f"{kind}_{family}-{seed}.{number}"
                yield Scenario(name, _of(trace), trace.truth, trace.scrape_seconds)
    for number in range(each):
        yield _fleet(np.random.default_rng([seed, number]), f"l_fleet-{seed}.{number}")


def _fleet(rng: np.random.Generator, name: str) -> Scenario:
    """Five trainers, two of which leak."""
    scenario = Scenario(name, {})
    families = [
        str(family)
        for of, many in ((LEAKS, 2), (HABITS, 3))
        for family in rng.choice(sorted(of.keys() - LENGTHS), many, replace=False)
    ]
    for rank, family in enumerate(families):
        trace, instance = _make(rng, family), f"127.0.0.1:{7777 + rank}"
        scenario.truth += [{**truth, "instance": instance} for truth in trace.truth]
        for selector, values in _of(trace).items():
            metric, _, labels = selector.rstrip("}").partition("{")
            joined = ",".join(filter(None, [labels, f'instance="{instance}"']))
            scenario.series[f"{metric}{{{joined}}}"] = values
    return scenario
