"""What one evaluation of the rules costs per trainer, by Prometheus' own account."""

from __future__ import annotations

import json
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from benchmarks.leaks.fleet import Shape, samples
from benchmarks.prometheus import PROMETHEUS, Sample, push, serve

SCRAPE_SECONDS = 15
MEASURED_SECONDS = 5  # between the evaluations that are measured
HISTORY_SECONDS = 110 * 60  # as much as the longest window looks back on, and less than a head block
_COLD = 3  # evaluations until each rule has read what those before it record


def measure(
    rules: list[Path], shapes: Sequence[Shape], trainers: int = 50, evaluations: int = 20
) -> dict[str, float]:
    """Seconds per trainer and evaluation, by rule group: the best of some, as other work only adds.

    As in the stack, a scrape comes in 15 s and an evaluation in 30, but for those that are measured, which
    follow each other faster. Each trainer has one of the `shapes`, in turn.
    """
    best: dict[str, float] = {}
    for group in _evaluated(rules, shapes, trainers, evaluations):
        best[group["name"]] = min(best.get(group["name"], 1e9), group["evaluationTime"])
    return {group: seconds / trainers for group, seconds in best.items()}


def measure_rules(
    rules: list[Path], shapes: Sequence[Shape], trainers: int = 50, evaluations: int = 20
) -> dict[tuple[str, str, str], float]:
    """The same by rule: its group, the name of what it records or alerts, and its expression."""
    best: dict[tuple[str, str, str], float] = {}
    for group in _evaluated(rules, shapes, trainers, evaluations):
        for rule in group["rules"]:
            key = (group["name"], rule["name"], rule["query"])
            best[key] = min(best.get(key, 1e9), rule["evaluationTime"])
    return {key: seconds / trainers for key, seconds in best.items()}


def _evaluated(
    rules: list[Path], shapes: Sequence[Shape], trainers: int, evaluations: int
) -> Iterator[dict[str, Any]]:
    """Each group as Prometheus describes it, after each of so many evaluations."""
    fleet = list(islice(cycle(shapes), trainers))
    with tempfile.TemporaryDirectory() as name, serve(PROMETHEUS, Path(name), "{}") as server:
        start = time.time() - HISTORY_SECONDS
        at, evaluated = start, False
        while at < time.time():
            evaluated = not evaluated
            push(server.url, (s for s in samples(fleet, at, start) if evaluated or _scraped(s)), at)
            at += SCRAPE_SECONDS
        config = {
            "global": {"evaluation_interval": f"{MEASURED_SECONDS}s"},
            "rule_files": [str(path.resolve()) for path in rules],
        }
        (Path(name) / "prometheus.yml").write_text(json.dumps(config))
        server.process.send_signal(signal.SIGHUP)
        seen: dict[str, set[str]] = {}
        while not seen or min(map(len, seen.values())) < evaluations + _COLD:
            time.sleep(1)
            if at <= time.time():
                push(server.url, filter(_scraped, samples(fleet, at, start)), at)
                at += SCRAPE_SECONDS
            for group in server.client.get("/api/v1/rules").json()["data"]["groups"]:
                if group["lastEvaluation"].startswith("0001"):
                    continue
                moments = seen.setdefault(group["name"], set())
                moments.add(group["lastEvaluation"])
                if len(moments) > _COLD:
                    yield group


def _scraped(sample: Sample) -> bool:
    return ":" not in sample[0]["__name__"]
