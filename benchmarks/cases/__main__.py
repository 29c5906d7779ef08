"""`python -m benchmarks.cases`: public leaks, ours beside other tools; exits with 1 if ours misses a goal."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from benchmarks.cases import page, results
from benchmarks.cases.case import Case, load_all
from benchmarks.cases.score import Report, Total, goals, judge
from benchmarks.cases.tools.registry import OURS, TOOLS, report
from benchmarks.running import allow_interrupts


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cases", description=__doc__)
    only = "only cases whose name contains one of these; of the others earlier results count"
    parser.add_argument("--only", nargs="+", default=[""], help=only)
    parser.add_argument("--seconds", type=float, default=120, help="how long each script runs")
    mostly_sleeping = 3 * (os.cpu_count() or 1)
    parser.add_argument("--jobs", type=int, default=mostly_sleeping, help="scripts at a time")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS), help="only these tools")
    chosen = parser.parse_args()
    cases = [case for case in load_all() if any(part in case.name for part in chosen.only)]
    if not cases:
        parser.error("no such case")

    allow_interrupts()
    totals = {tool: Total() for tool in chosen.tools}
    with tempfile.TemporaryDirectory(prefix="cases-") as scratch, _pool(chosen.jobs) as pool:
        for case, reports in _run(cases, chosen.tools, Path(scratch), chosen.seconds, pool):
            scores = {tool: judge(case, leak, twin) for tool, (leak, twin) in reports.items()}
            print(case.name, flush=True)
            for tool, score in scores.items():
                totals[tool].scores.append(score)
                print(f"  {tool}: {score}", flush=True)
            result = results.Result(_seconds(case, chosen.seconds), scores, case.installed)
            results.keep(results.RESULTS, case.name, result)

    page.PAGE.write_text(page.current(), encoding="utf-8")
    if OURS not in totals:
        return 0
    wanted = goals(totals[OURS])
    print("\n".join(goal.line() for goal in wanted))
    return 0 if all(goal.holds for goal in wanted) else 1


def _run(
    cases: list[Case], tools: list[str], scratch: Path, seconds: float, pool: ThreadPoolExecutor
) -> Iterator[tuple[Case, dict[str, tuple[Report, Report]]]]:
    """Run everything in `pool`; yield each case with the reports on it and its twin."""
    runs = []
    for case in cases:
        reports: dict[str, list[Future[Report]]] = {tool: [] for tool in tools}
        for variant in ("leak", "twin"):
            folder, lasting = scratch / case.name / variant, _seconds(case, seconds)
            script = case.write(folder, healthy=variant == "twin")
            for tool in tools:
                reports[tool].append(pool.submit(report, tool, script, folder / tool, lasting))
        runs.append((case, reports))
    for case, reports in runs:
        yield case, {tool: (leak.result(), twin.result()) for tool, (leak, twin) in reports.items()}


@contextmanager
def _pool(jobs: int) -> Iterator[ThreadPoolExecutor]:
    """A pool that starts no more scripts once something has failed, or Ctrl-C was pressed."""
    pool = ThreadPoolExecutor(jobs)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _seconds(case: Case, wanted: float) -> float:
    return max(wanted, 60 * case.minutes)


if __name__ == "__main__":
    sys.exit(main())
