"""What one evaluation of the rules costs per trainer, by Prometheus' own account.

    python -m benchmarks.leaks.cost [--write]

A trainer with everything watched, 50 of them. The floor: what it costs to read and to record its levels, from
rules that do nothing else. The shipped rules: each by Prometheus's own account, added up by what it is for.
`--write` puts both into docs/fleet.md.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from benchmarks.leaks.fleet import EVERYTHING, Shape, levels, samples
from benchmarks.measure import Table, write_part
from benchmarks.prometheus import PROMETHEUS, Sample, push, serve
from benchmarks.running import ROOT

RULES = ROOT / "prometheus" / "rules"
DOCUMENT = ROOT / "docs" / "fleet.md"
BEGIN, END = "<!-- floor -->", "<!-- end of floor -->"
GOAL = 1e-3

# What is recorded, and its expression; the rules of one experiment are one group.
_LEVEL = "job:trainer_resource:level"
_RECORD = ("floor:level", f"{_LEVEL} * 1")
FLOOR: dict[str, tuple[tuple[str, str], ...]] = {
    "read, as it is now": (("floor:read", f"count({_LEVEL})"),),
    "read, sixteen minutes of it": (("floor:window", f"count(max_over_time({_LEVEL}[945s]))"),),
    "read, an hour of it": (("floor:hour", f"count(max_over_time({_LEVEL}[3825s]))"),),
    "read twice and compared": (("floor:joined", f"count({_LEVEL} > {_LEVEL} offset 30s)"),),
    "read and recorded": (_RECORD,),
    "recorded, with its highest value and the rises of that": (
        ("floor:of_mark", _RECORD[1]),
        ("floor:mark", "last_over_time(floor:mark[15s]) > floor:of_mark or floor:of_mark"),
        ("floor:gain", "idelta(floor:mark[15s]) > 0"),
    ),
}

# The first pattern found in `group name` decides.
PURPOSES = {
    r"^trainer-leak job:trainer_resource:level": "levels: every watched series under one name",
    r"^trainer-leak job:trainer_(resource:(capacity|unexplained|sample_age)|memory:)": "what explains them",
    r"^trainer-leak job:trainer(_process|_progress|_cycle|):": "life, cycles and resets of a trainer",
    r"^trainer-leak job:trainer_resource:(high_water|gain)": "high-water marks and gains",
    r"^trainer-leak ": "windows, straight lines and verdicts",
    r"^leak_alerts ": "alerts about leaks",
    r"^(limits|default_limits|thresholds) ": "limits, thresholds and growth",
    r"^growth_alerts ": "limits, thresholds and growth",
    r"^forecast ": "forecasts",
    r"": "health, names, verdicts on the pages",
}
SCRAPE_SECONDS = 15
MEASURED_SECONDS = 5  # between the evaluations that are measured
HISTORY_SECONDS = 110 * 60  # as much as the longest window looks back on, and less than a head block
PATIENCE = 300.0  # seconds without an evaluation, as of rules that Prometheus does not load
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
    """Each group as Prometheus describes it, after each of so many evaluations.

    Raises:
        TimeoutError: Prometheus evaluates nothing; the end of its log is in the message.

    """
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
        counted, until = 0, time.monotonic() + PATIENCE
        while not seen or min(map(len, seen.values())) < evaluations + _COLD:
            time.sleep(1)
            if time.monotonic() > until:
                raise TimeoutError(f"no evaluation in {PATIENCE:.0f} s: {server.log()}")
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
            if (now := sum(map(len, seen.values()))) > counted:
                counted, until = now, time.monotonic() + PATIENCE


def _scraped(sample: Sample) -> bool:
    return ":" not in sample[0]["__name__"]


def prometheus_version() -> str:
    said = subprocess.run(["promtool", "--version"], capture_output=True, text=True, check=True).stdout
    return f"Prometheus {said.split()[2].partition('+')[0]}"


def by_purpose(rules: Mapping[tuple[str, str, str], float]) -> dict[str, float]:
    """Seconds a trainer by what its rules are for, most first."""
    found: dict[str, float] = {}
    for (group, name, _), seconds in rules.items():
        purpose = next(
            purpose for pattern, purpose in PURPOSES.items() if re.search(pattern, f"{group} {name}")
        )
        found[purpose] = found.get(purpose, 0.0) + seconds
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def floor(trainers: int) -> dict[str, float]:
    """Seconds a trainer of each experiment."""
    groups = [
        {"name": name, "rules": [{"record": record, "expr": expression} for record, expression in rules]}
        for name, rules in FLOOR.items()
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "floor.yml"
        file.write_text(json.dumps({"groups": groups}))
        # The levels are in the history that the shipped rules would have recorded.
        found = measure([file], [EVERYTHING], trainers)
    return {name: found[name] for name in FLOOR}


def text(found: Mapping[str, float], rules: Mapping[tuple[str, str, str], float]) -> str:
    count, total = levels(EVERYTHING), sum(rules.values())
    table = Table("", f"each of {count} levels of a trainer | ms | a level, µs")
    table.rows = [[what, f"{1e3 * s:.2f}", f"{1e6 * s / count:.1f}"] for what, s in found.items()]
    spent = Table("", f"of the {1e3 * total:.1f} ms of all {len(rules)} rules | ms | share")
    spent.rows = [[what, f"{1e3 * s:.2f}", f"{s / total:.0%}"] for what, s in by_purpose(rules).items()]
    read, least = found[next(iter(FLOOR))], found[next(reversed(FLOOR))]
    said = (
        f"A level, its highest value and the rises of that take {1e3 * least:.2f} ms, and nothing is judged "
        f"yet. A millisecond leaves {max(GOAL - least, 0) / read:.0f} further reads of each level for all "
        "windows, limits, forecasts, alerts and pages together."
    )
    return f"{table.body()}\n\n{said}\n\n{spent.body()}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leaks.cost", description=__doc__)
    parser.add_argument("--trainers", type=int, default=50, metavar="N")
    parser.add_argument("--write", action="store_true", help="into docs/fleet.md")
    chosen = parser.parse_args()
    found = floor(chosen.trainers)
    rules = measure_rules(sorted(RULES.glob("*.yml")), [EVERYTHING], chosen.trainers)
    report = text(found, rules)
    print(report)
    for (group, name, expression), seconds in sorted(rules.items(), key=lambda item: -item[1])[:12]:
        print(
            f"{1e6 * seconds:6.0f} µs  {group}  {name}  {' '.join(expression.split())[:90]}", file=sys.stderr
        )
    if chosen.write:
        head = f"`make bench-floor`, {prometheus_version()}, {chosen.trainers} trainers:"
        write_part(DOCUMENT, BEGIN, END, f"{head}\n\n{report}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
