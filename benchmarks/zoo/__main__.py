"""`python -m benchmarks.zoo`: public leaks, ours beside other tools; exits with 1 when ours misses a goal."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from benchmarks.zoo import document, stored
from benchmarks.zoo.catalogue import Case, load_all
from benchmarks.zoo.running import allow_interrupts
from benchmarks.zoo.score import Report, Total, goals, judge
from benchmarks.zoo.tools.plain import growth_per_minute
from benchmarks.zoo.tools.registry import OURS, ROOT, TOOLS, report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__)
    parser.add_argument(
        "--only",
        nargs="+",
        default=[""],
        help="only cases whose name contains one of these; of the others earlier results count",
    )
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
    with tempfile.TemporaryDirectory(prefix="zoo") as scratch, _pool(chosen.jobs) as pool:
        for case, leak_twin, reports in _run(cases, chosen.tools, Path(scratch), chosen.seconds, pool):
            scores = {tool: judge(case, leak, twin) for tool, (leak, twin) in reports.items()}
            grown = leak_twin and f"{leak_twin[0] / 1e6:.0f} MB/min, twin {leak_twin[1] / 1e6:.0f}"
            print(f"{case.name}: {grown or 'growth without tools not measured'}", flush=True)
            for tool, score in scores.items():
                totals[tool].scores.append(score)
                print(f"  {tool}: {score}", flush=True)
            load = os.getloadavg()[0] / (os.cpu_count() or 1)
            lasted = _seconds(case, chosen.seconds)
            result = stored.Result(lasted, leak_twin, scores, _revision(), load, case.installed)
            stored.keep(stored.RESULTS, case.name, result)

    document.write()
    if OURS not in totals:
        return 0
    for goal in goals(totals[OURS]):
        print(f"{'pass' if goal.reached else 'FAIL'}: {goal.text}: {goal.measured}")
    return 0 if all(goal.reached for goal in goals(totals[OURS])) else 1


def _run(
    cases: list[Case], tools: list[str], scratch: Path, seconds: float, pool: ThreadPoolExecutor
) -> Iterator[tuple[Case, tuple[float, float] | None, dict[str, tuple[Report, Report]]]]:
    """Run everything in `pool`; yield each case with its plain growth and the reports on it and its twin.

    The growth without any tool is measured when tools are compared, not for ours alone.
    """
    runs = []
    for case in cases:
        lasting = _seconds(case, seconds)
        plain: list[Future[float]] = []
        reports: dict[str, list[Future[Report]]] = {tool: [] for tool in tools}
        for variant in ("leak", "twin"):
            healthy = variant == "twin"
            folder = scratch / case.name / variant
            script = case.write(folder, healthy=healthy)
            if tools != [OURS]:
                plain.append(pool.submit(growth_per_minute, script, folder / "plain", lasting))
            for tool in tools:
                reports[tool].append(pool.submit(report, tool, script, folder / tool, lasting))
        runs.append((case, plain, reports))
    for case, plain, reports in runs:
        yield (
            case,
            _growth(case, plain),
            {tool: (leak.result(), twin.result()) for tool, (leak, twin) in reports.items()},
        )


def _growth(case: Case, plain: list[Future[float]]) -> tuple[float, float] | None:
    try:
        return (plain[0].result(), plain[1].result()) if plain else None
    except RuntimeError as error:
        print(f"{case.name}: growth without tools not measured: {error}", file=sys.stderr)
        return None


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


def _revision() -> str:
    """The commit that is checked out, shortened; empty outside of a repository."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=7", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
