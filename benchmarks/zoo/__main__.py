"""`python -m benchmarks.zoo`: public leaks, ours beside other tools; exits with 1 when ours misses a goal."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from benchmarks.zoo.catalogue import Case, load_all
from benchmarks.zoo.document import write
from benchmarks.zoo.score import Report, Total, goals, judge
from benchmarks.zoo.tools.plain import growth_per_minute
from benchmarks.zoo.tools.registry import OURS, ROOT, TOOLS, report

STATE = Path(os.environ.get("HEAPWATCH_STATE", ROOT / ".heapwatch"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__)
    parser.add_argument(
        "--only", default="", help="only cases whose name contains this; the document is left alone"
    )
    parser.add_argument("--seconds", type=float, default=120, help="how long each script runs")
    mostly_sleeping = 3 * (os.cpu_count() or 1)
    parser.add_argument("--jobs", type=int, default=mostly_sleeping, help="scripts at a time")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS), help="only these tools")
    chosen = parser.parse_args()
    cases = load_all(chosen.only)
    if not cases:
        parser.error("no such case")

    totals = {tool: Total() for tool in chosen.tools}
    growth: dict[str, tuple[float, float]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="zoo") as scratch,
        ThreadPoolExecutor(chosen.jobs) as pool,
    ):
        for case, leak_twin, reports in _run(cases, chosen.tools, Path(scratch), chosen.seconds, pool):
            growth[case.name] = leak_twin
            print(f"{case.name}: {leak_twin[0] / 1e6:.0f} MB/min, twin {leak_twin[1] / 1e6:.0f}", flush=True)
            for tool, (leak, twin) in reports.items():
                score = judge(case, leak, twin)
                totals[tool].scores.append(score)
                print(f"  {tool}: {score}", flush=True)

    results = STATE / "zoo" / "results.json"
    results.parent.mkdir(parents=True, exist_ok=True)
    scores = {tool: [asdict(score) for score in total.scores] for tool, total in totals.items()}
    results.write_text(json.dumps({"seconds": chosen.seconds, "growth": growth, "scores": scores}, indent=1))
    print(f"results: {results}")
    if not chosen.only and set(chosen.tools) == set(TOOLS):
        write(ROOT / "docs" / "leak-zoo.md", cases, totals, growth, chosen.seconds)
    if OURS not in totals:
        return 0
    for goal in goals(totals[OURS]):
        print(f"{'pass' if goal.reached else 'FAIL'}: {goal.text}: {goal.measured}")
    return 0 if all(goal.reached for goal in goals(totals[OURS])) else 1


def _run(
    cases: list[Case], tools: list[str], scratch: Path, seconds: float, pool: ThreadPoolExecutor
) -> Iterator[tuple[Case, tuple[float, float], dict[str, tuple[Report, Report]]]]:
    """Run everything in `pool`; yield each case with its plain growth and the reports on it and its twin."""
    runs = []
    for case in cases:
        plain: list[Future[float]] = []
        reports: dict[str, list[Future[Report]]] = {tool: [] for tool in tools}
        for variant in ("leak", "twin"):
            healthy = variant == "twin"
            folder = scratch / case.name / variant
            script = case.write(folder, healthy=healthy)
            plain.append(pool.submit(growth_per_minute, script, folder / "plain", seconds))
            for tool in tools:
                reports[tool].append(pool.submit(report, tool, script, folder / tool, seconds))
        runs.append((case, plain, reports))
    for case, plain, reports in runs:
        grown = (plain[0].result(), plain[1].result())
        yield case, grown, {tool: (leak.result(), twin.result()) for tool, (leak, twin) in reports.items()}


if __name__ == "__main__":
    sys.exit(main())
