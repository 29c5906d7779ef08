"""`python -m benchmarks.cases.plugins`: the cases as unit tests, under our marker and other plugins'."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.util import find_spec
from pathlib import Path

from benchmarks.cases.case import load_all
from benchmarks.cases.plugins import page
from benchmarks.cases.plugins.plugin import PLUGINS
from benchmarks.cases.plugins.trials import keep, load, try_out
from benchmarks.running import ROOT

# by its first name, so that earlier results count
RESULTS = Path(os.environ.get("HEAPWATCH_STATE", ROOT / ".heapwatch")).absolute() / "cases-plugins"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cases.plugins", description=__doc__)
    only = "only cases whose name contains this; of the others earlier results count"
    parser.add_argument("--only", default="", help=only)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="tests at a time")
    parser.add_argument("--plugins", nargs="+", choices=PLUGINS, default=list(PLUGINS), help="only these")
    chosen = parser.parse_args()
    cases = load_all(chosen.only)
    if not cases:
        parser.error("no such case")
    for plugin in chosen.plugins:
        if find_spec(PLUGINS[plugin].module.partition(".")[0]) is None:
            parser.error(f"{plugin} is not installed: `make compared-tools`, or name others with --plugins")

    with tempfile.TemporaryDirectory(prefix="cases-") as scratch, ThreadPoolExecutor(chosen.jobs) as pool:
        runs = {}
        for case in cases:
            for plugin in chosen.plugins:
                place = Path(scratch) / case.name / plugin
                runs[pool.submit(try_out, case, PLUGINS[plugin], place)] = case, plugin
        for run in as_completed(runs):
            case, plugin = runs[run]
            trial = run.result()
            keep(RESULTS, case.name, plugin, trial)
            print(f"{case.name}, {plugin}: leak {trial.leak}, twin {trial.twin}", flush=True)

    everything = load_all()
    results = load(RESULTS, [one.name for one in everything])
    page.write(ROOT / "docs" / "leak-cases-plugins.md", everything, results)
    print(f"results: {RESULTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
