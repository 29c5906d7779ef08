"""Compare the answers of Prometheus and VictoriaMetrics to every rule and every panel query.

    python -m benchmarks.parity [--minutes 100] [--trainers 8] [--seed 1]

Both get the same series of made-up trainers by remote write: what was scraped, and what the recording rules
make of it, evaluated in order every 30 s by Prometheus. Then each expression is evaluated by both at the same
instants. Exits 1 when an answer differs by a series, or by more than a millionth of a value. What differs by
design is only printed: Prometheus extrapolates `rate` and `increase`, and repeats the last value of a trainer
that was not scraped for up to five minutes, where a panel of VictoriaMetrics has a gap. Needs `prometheus`
and `victoria-metrics` on PATH.
"""

from __future__ import annotations

import argparse
import math
import re
import struct
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from benchmarks.leaks.replay import load_groups
from benchmarks.leaks.scenario import Scenario, generate
from benchmarks.prometheus import PROMETHEUS, Sample, push, serve
from heapwatch import data
from tests.dashboards.documents import interpolate, targets

EVALUATION_SECONDS = 30
AHEAD_SECONDS = 15  # a trainer is scraped before the rules are evaluated
LOOKBACK = "5m"  # Prometheus's default
# VictoriaMetrics makes a shorter range of `deriv` as long as its flag minStalenessInterval.
SHORTEST_SECONDS = 150
COMPARED = 12  # instants, over the second half of the history
TOLERANCE = 1e-6
# Prometheus extrapolates these to the ends of the range, VictoriaMetrics reads the sample before it.
BY_DESIGN = re.compile(r"\b(rate|increase|delta)\(")
STALE = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))[0]
CONFIGURATION = "storage: {tsdb: {out_of_order_time_window: 1d}}\n"
VICTORIA_METRICS = (
    "victoria-metrics",
    "-storageDataPath={folder}",
    "-httpListenAddr=127.0.0.1:{port}",
    "-retentionPeriod=1",
    "-search.latencyOffset=0s",
    f"-search.minStalenessInterval={SHORTEST_SECONDS}s",
    f"-search.maxStalenessInterval={LOOKBACK}",
)

Answer = dict[tuple[tuple[str, str], ...], dict[float, float]]  # labels to values by time


class Query(NamedTuple):
    """One expression, and where it is used."""

    where: str
    expression: str
    instant: bool = True


class Difference(NamedTuple):
    """The first difference of a query's answers."""

    query: Query
    what: str
    by_design: bool


def recording_rules() -> list[dict[str, Any]]:
    return [rule for rule in _rules() if "record" in rule]


def queries() -> list[Query]:
    """Every expression of a rule, and every query of a panel with all trainers chosen."""
    rules = [Query(rule.get("record") or rule["alert"], rule["expr"]) for rule in _rules()]
    panels = [
        Query(str(target), interpolate(target.target["expr"], range_seconds=1800), target.target["instant"])
        for target in targets()
    ]
    return rules + panels


def _rules() -> Iterator[dict[str, Any]]:
    for file in sorted(data.path("prometheus", "rules").glob("*.yml")):
        for group in load_groups(file):
            yield from group["rules"]


def ask(client: httpx.Client, query: Query, instant: float) -> Answer:
    """The answer at one instant, or for a panel over the half hour before it.

    Raises:
        ValueError: the server refuses the query; its words.

    """
    parameters: dict[str, str | float]
    if query.instant:
        path, parameters = "query", {"time": instant, "step": LOOKBACK}
    else:
        path, parameters = "query_range", {"start": instant - 1800, "end": instant, "step": 60}
    answer = client.get(f"/api/v1/{path}", params={"query": query.expression, **parameters}).json()
    if answer["status"] != "success":
        raise ValueError(answer["error"].strip()[:200])
    if answer["data"]["resultType"] == "scalar":
        return {(): {instant: float(answer["data"]["result"][1])}}
    found: Answer = {}
    for series in answer["data"]["result"]:
        # Where a metric's name stays differs; no rule or panel reads it from an answer.
        labels = tuple(sorted((k, v) for k, v in series["metric"].items() if k != "__name__"))
        pairs = series["values"] if "values" in series else [series["value"]]
        found.setdefault(labels, {}).update((float(at), float(value)) for at, value in pairs)
    return found


def difference(one: Answer, other: Answer, gaps: frozenset[tuple[str, float]] = frozenset()) -> str:
    """What differs first, in words; empty where nothing does.

    Args:
        one: of Prometheus.
        other: of VictoriaMetrics.
        gaps: instances and times at which the second answer may lack a value.

    """
    for labels in sorted(one.keys() | other.keys()):
        ours, theirs = one.get(labels, {}), other.get(labels, {})
        for at in sorted(ours.keys() | theirs.keys()):
            a, b = ours.get(at), theirs.get(at)
            if b is None and (dict(labels).get("instance"), at) in gaps:
                continue
            if a is None or b is None or not _equal(a, b):
                return f"{dict(labels)} at {at:.0f}: {a} and {b}"
    return ""


def _equal(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=TOLERANCE) or (math.isnan(one) and math.isnan(other))


def record(client: httpx.Client, urls: list[str], start: float, trainers: list[Scenario], steps: int) -> None:
    """Write the history into all servers: scraped samples, and what the recording rules make of them."""
    rules, alive = recording_rules(), set[tuple[tuple[str, str], ...]]()
    for step in range(steps):
        at = start + step * EVALUATION_SECONDS
        for half in (0, 15):
            scraped = list(_scraped(trainers, step * EVALUATION_SECONDS + half, start))
            _push(urls, scraped, at + half - AHEAD_SECONDS)
        recorded: dict[tuple[tuple[str, str], ...], float] = {}
        for rule in rules:
            made = {}
            for labels, values in ask(client, Query(rule["record"], rule["expr"]), at).items():
                named = {**dict(labels), **rule.get("labels", {}), "__name__": rule["record"]}
                key = tuple(sorted((name, str(value)) for name, value in named.items() if value))
                made[key] = next(iter(values.values()))
            _push(urls, [(dict(key), value) for key, value in made.items()], at)
            recorded |= made
        _push(urls, [(dict(key), STALE) for key in alive - recorded.keys()], at)
        alive = set(recorded)


def _push(urls: list[str], samples: list[Sample], at: float) -> None:
    for url in urls if samples else []:
        push(url, samples, at)


def _scraped(trainers: list[Scenario], second: int, start: float) -> Iterator[Sample]:
    for trainer in trainers:
        if second % trainer.scrape_seconds:
            continue
        who = {"job": "trainer", "instance": trainer.id}
        number, up = second // trainer.scrape_seconds, 0.0
        for name, labels, values in trainer.parsed():
            value = values[number] if number < len(values) else None
            if value is not None:
                up = 1.0
                level = value + start if name.startswith("process_start_time") else value
                yield {"__name__": name, **who, **labels}, level
        yield {"__name__": "up", **who}, up


def unread(trainers: list[Scenario], start: float, seconds: int) -> frozenset[tuple[str, float]]:
    """Instances and whole seconds for which the last sample is too old for VictoriaMetrics."""
    found = set()
    for trainer in trainers:
        last = 0
        for second in range(seconds):
            if any(labels["__name__"] != "up" for labels, _ in _scraped([trainer], second, start)):
                last = second
            elif second - last > SHORTEST_SECONDS:
                found.add((trainer.id, start + second - AHEAD_SECONDS))
    return frozenset(found)


def compare(minutes: float, count: int, seed: int) -> tuple[int, list[Difference]]:
    """How many queries were compared, and those whose answers differ."""
    found = list(generate(seed, each=1))
    trainers = list(islice(found, 0, None, max(1, len(found) // count)))[:count]
    steps = round(minutes * 60 / EVALUATION_SECONDS)
    start = time.time() // 60 * 60 - (steps + 1) * EVALUATION_SECONDS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            serve(PROMETHEUS, folder / "prometheus", CONFIGURATION) as prometheus,
            serve(VICTORIA_METRICS, folder / "victoria-metrics", CONFIGURATION) as victoria_metrics,
        ):
            urls = [prometheus.url, victoria_metrics.url]
            record(prometheus.client, urls, start, trainers, steps)
            victoria_metrics.client.get("/internal/force_flush")
            instants = [
                start + EVALUATION_SECONDS * round(steps * (0.5 + 0.5 * k / COMPARED))
                for k in range(COMPARED)
            ]
            asked, gaps = queries(), unread(trainers, start, steps * EVALUATION_SECONDS)
            both = (prometheus.client, victoria_metrics.client)
            compared = (_compare(*both, query, instants, gaps) for query in asked)
            return len(asked), [found for found in compared if found is not None]


def _compare(
    one: httpx.Client,
    other: httpx.Client,
    query: Query,
    instants: list[float],
    gaps: frozenset[tuple[str, float]],
) -> Difference | None:
    """The first difference that is not by design, or else the first of all."""
    extrapolated = bool(BY_DESIGN.search(query.expression))
    first = ""
    for instant in instants:
        try:
            answers = ask(one, query, instant), ask(other, query, instant)
        except ValueError as error:
            return Difference(query, f"refused: {error}", by_design=False)
        first = first or difference(*answers)
        if what := difference(*answers, frozenset() if query.instant else gaps):
            return Difference(query, what, extrapolated)
    return Difference(query, first, by_design=True) if first else None


def main() -> int:
    """Print each difference; the exit status says whether there is one."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.parity", description=__doc__)
    options.add_argument("--minutes", type=float, default=100, help="of history (%(default)s)")
    options.add_argument("--trainers", type=int, default=8, help="made-up trainers (%(default)s)")
    options.add_argument("--seed", type=int, default=1, help="of their numbers (%(default)s)")
    given = options.parse_args()
    asked, differences = compare(given.minutes, given.trainers, given.seed)
    wrong = [one for one in differences if not one.by_design]
    for one in differences:
        kind = "differs by design" if one.by_design else "differs"
        print(f"{one.query.where}: {kind}\n  {' '.join(one.query.expression.split())[:200]}\n  {one.what}")
    print(f"{asked} queries: {len(wrong)} differ, {len(differences) - len(wrong)} more by design")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
