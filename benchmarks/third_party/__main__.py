"""`make bench-third-party`: trainers of other people beside a running stack, healthy and leaking.

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

from benchmarks.running import ROOT
from benchmarks.third_party import page
from benchmarks.third_party.catalog import TRAINERS, Trainer, chosen
from benchmarks.third_party.observation import Observation, load
from benchmarks.third_party.run import interrupted, reserve, run
from benchmarks.third_party.stack import Stack

DEFAULT_PORT = 7777
DOCUMENT = ROOT / "docs" / "third-party-trainers.md"


def main() -> int:
    """Run what was chosen; 0 when all of it was right."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.third_party", description=__doc__)
    only = "trainers whose name has this"
    parser.add_argument("--only", action="append", default=[], metavar="PART", help=only)
    minutes = "how long each trains (10; leaking: a minute past its deadline)"
    parser.add_argument("--minutes", type=float, help=minutes)
    parser.add_argument("--at-once", type=int, default=2, help="trainers at a time (2)")
    arguments = parser.parse_args()
    trainers = chosen(arguments.only)
    if not trainers:
        parser.error(f"no trainer has {' or '.join(arguments.only)} in its name")

    results = Path(os.environ.get("HEAPWATCH_STATE") or ROOT / ".heapwatch").absolute() / "third-party"
    results.mkdir(parents=True, exist_ok=True)
    plan = [(one, leak) for leak in (False, True) for one in trainers]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    wrong = _run_all(plan, results, arguments.minutes, arguments.at_once)

    stored = {(run.name, run.leaking): run for run in map(load, sorted(results.glob("*-[hl]ea*.json")))}
    print("\n".join(["", page.healthy(stored).body(), "", page.leaking(stored).body()]))
    if len(stored) == 2 * len(TRAINERS):
        DOCUMENT.write_text(page.document(stored), encoding="utf-8")
        print(f"\nwritten: {DOCUMENT.relative_to(ROOT)}")
    return int(wrong > 0)


def _run_all(plan: list[tuple[Trainer, bool]], results: Path, minutes: float | None, at_once: int) -> int:
    """Run the plan beside one stack; returns how many runs were not right."""
    folder = results / time.strftime("%Y%m%d-%H%M%S")
    folder.mkdir()
    wrong = 0
    # the supervisor's socket needs a short path
    with tempfile.TemporaryDirectory(prefix="trainers-") as state:
        stack = Stack(Path(state))
        try:
            stack.up()
            reserve(DEFAULT_PORT)  # taken, as it is by the trainer of a user's own stack
            print(f"stack up; {len(plan)} runs, {at_once} at a time; {folder}", flush=True)
            with ThreadPoolExecutor(at_once) as pool:
                futures = {
                    pool.submit(run, one, stack, folder, minutes, leaking=leak): one for one, leak in plan
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


def _say(trainer: Trainer, seen: Observation) -> bool:
    """Print one line of a run; whether something was wrong."""
    found = seen.problems(trainer)
    good = "quiet"
    if seen.leaking and not found:
        good = f"reported {seen.reported:.1f} min, named {seen.named:.1f} min"
    print(f"{seen.label:<34}{'; '.join(found) or good}", flush=True)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
