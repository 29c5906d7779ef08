"""What a leak rule in PromQL costs at the least, and where the time of the shipped rules goes.

    python -m benchmarks.leaks.floor [--write]

A trainer with everything watched, 50 of them. The floor: what it costs to read and to record its levels, from
rules that do nothing else. The shipped rules: each by Prometheus's own account, added up by what it is for.
`--write` puts both into docs/fleet.md.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.leaks.__main__ import RULES, prometheus_version
from benchmarks.leaks.cost import measure, measure_rules
from benchmarks.leaks.fleet import EVERYTHING, levels
from benchmarks.measure import Table, write_part
from benchmarks.running import ROOT

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
    """The two tables, and what follows from them."""
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
    """Measure and print; 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leaks.floor", description=__doc__)
    parser.add_argument("--trainers", type=int, default=50, metavar="N")
    parser.add_argument("--write", action="store_true", help="into docs/fleet.md")
    chosen = parser.parse_args()
    found = floor(chosen.trainers)
    rules = measure_rules(sorted(RULES.glob("*.yml")), [EVERYTHING], chosen.trainers)
    told = text(found, rules)
    print(told)
    for (group, name, expression), seconds in sorted(rules.items(), key=lambda item: -item[1])[:12]:
        print(
            f"{1e6 * seconds:6.0f} µs  {group}  {name}  {' '.join(expression.split())[:90]}", file=sys.stderr
        )
    if chosen.write:
        head = f"`make bench-floor`, {prometheus_version()}, {chosen.trainers} trainers:"
        write_part(DOCUMENT, BEGIN, END, f"{head}\n\n{told}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
