"""`make strangers`: trainers of other people beside a running stack, healthy and leaking.

Exits with 1 when a healthy one raises an alert, logs a warning or has trouble with its port, or when a leak
is not reported and named in time.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from benchmarks.third_party import judge, table
from benchmarks.third_party.catalog import STRANGERS, Stranger, chosen
from benchmarks.third_party.observation import Observation, load
from benchmarks.third_party.run import interrupted, reserve, run
from benchmarks.third_party.stack import Stack

ROOT = Path(__file__).parents[2]
DEFAULT_PORT = 7777
DOCUMENT = ROOT / "docs" / "strangers.md"


def main() -> int:
    """Run what was chosen; 0 when all of it was right."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.third_party", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], metavar="PART", help="trainers whose name has this"
    )
    parser.add_argument(
        "--minutes", type=float, help="how long each trains (10; leaking: a minute past its deadline)"
    )
    parser.add_argument("--at-once", type=int, default=2, help="trainers at a time (2)")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--healthy", action="store_true", help="only without their leaks")
    kinds.add_argument("--leak", action="store_true", help="only with their leaks")
    arguments = parser.parse_args()
    strangers = chosen(arguments.only)
    if not strangers:
        parser.error(f"no trainer has {' or '.join(arguments.only)} in its name")

    results = Path(os.environ.get("HEAPWATCH_STATE") or ROOT / ".heapwatch").absolute() / "strangers"
    results.mkdir(parents=True, exist_ok=True)
    plan = [
        (one, leak)
        for leak in (False, True)
        for one in strangers
        if not (arguments.leak if not leak else arguments.healthy)
    ]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    wrong = _run_all(plan, results, arguments.minutes, arguments.at_once)

    stored = {(run.name, run.leaking): run for run in map(load, sorted(results.glob("*-[hl]ea*.json")))}
    print("\n".join(["", *table.healthy(stored), "", *table.leaking(stored)]))
    if len(stored) == 2 * len(STRANGERS):
        DOCUMENT.write_text(table.document(stored), encoding="utf-8")
        print(f"\nwritten: {DOCUMENT.relative_to(ROOT)}")
    return int(wrong > 0)


def _run_all(plan: list[tuple[Stranger, bool]], results: Path, minutes: float | None, at_once: int) -> int:
    """Run the plan beside one stack; returns how many runs were not right."""
    folder = results / time.strftime("%Y%m%d-%H%M%S")
    folder.mkdir()
    wrong = 0
    # the supervisor's socket needs a short path
    with tempfile.TemporaryDirectory(prefix="strangers-") as state:
        stack = Stack(Path(state))
        try:
            stack.up()
            reserve(DEFAULT_PORT)  # taken, as it is by the trainer of a user's own stack
            print(f"stack up; {len(plan)} runs, {at_once} at a time; {folder}", flush=True)
            with ThreadPoolExecutor(at_once) as pool:
                futures = {
                    pool.submit(run, one, stack, folder / _label(one, leak), minutes, leaking=leak): one
                    for one, leak in plan
                }
                try:
                    for future in as_completed(futures):
                        seen = future.result()
                        seen.save(results)
                        wrong += _say(futures[future], seen)
                except BaseException:
                    interrupted.set()
                    pool.shutdown(cancel_futures=True)
                    raise
        finally:
            stack.down()
    return wrong


def _say(stranger: Stranger, seen: Observation) -> bool:
    """Print one line of a run; whether something was wrong."""
    found = judge.problems(stranger, seen)
    good = "quiet"
    if seen.leaking and not found:
        good = f"reported {judge.reported(seen):.1f} min, named {judge.named(seen):.1f} min"
    print(f"{_label(stranger, seen.leaking):<34}{'; '.join(found) or good}", flush=True)
    return bool(found)


def _label(stranger: Stranger, leaking: bool) -> str:
    return f"{stranger.name}-{'leaking' if leaking else 'healthy'}"


if __name__ == "__main__":
    sys.exit(main())
