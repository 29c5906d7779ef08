"""`python -m benchmarks.zoo.plugins`: the zoo as unit tests, under our marker and those of other plugins."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.util import find_spec
from pathlib import Path

from benchmarks.zoo.catalogue import load_all
from benchmarks.zoo.plugins import page
from benchmarks.zoo.plugins.contestants import CONTESTANTS
from benchmarks.zoo.plugins.trials import keep, load, try_out
from benchmarks.zoo.tools.registry import ROOT

STATE = Path(os.environ.get("HEAPWATCH_STATE", ROOT / ".heapwatch"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo.plugins", description=__doc__)
    parser.add_argument(
        "--only", default="", help="only cases whose name contains this; of the others earlier results count"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="tests at a time")
    parser.add_argument(
        "--plugins", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS), help="only these"
    )
    chosen = parser.parse_args()
    cases = load_all(chosen.only)
    if not cases:
        parser.error("no such case")
    for plugin in chosen.plugins:
        if find_spec(CONTESTANTS[plugin].module.partition(".")[0]) is None:
            parser.error(f"{plugin} is not installed: `make rivals`, or name the others with --plugins")

    folder = STATE.absolute() / "zoo-plugins"
    with (
        tempfile.TemporaryDirectory(prefix="zoo") as scratch,
        ThreadPoolExecutor(chosen.jobs) as pool,
    ):
        runs = {}
        for case in cases:
            for plugin in chosen.plugins:
                place = Path(scratch) / case.name / plugin
                runs[pool.submit(try_out, case, CONTESTANTS[plugin], place)] = case, plugin
        for run in as_completed(runs):
            case, plugin = runs[run]
            trial = run.result()
            keep(folder, case.name, plugin, trial)
            print(f"{case.name}, {plugin}: leak {trial.leak}, twin {trial.twin}", flush=True)

    everything = load_all()
    page.write(
        ROOT / "docs" / "leak-zoo-plugins.md", everything, load(folder, [one.name for one in everything])
    )
    print(f"results: {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
