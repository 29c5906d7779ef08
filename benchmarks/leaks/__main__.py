"""`python -m benchmarks.leaks`: how well leaks are distinguished from healthy growth, beside other detectors.

A run of all families writes its table into `docs/leak-detection.md`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.leaks.judge import COMPARED, HEAD, OURS, Firing, Score, judge
from benchmarks.leaks.judged import firing, with_judge
from benchmarks.leaks.replay import replay
from benchmarks.leaks.scenario import Scenario, generate, load
from benchmarks.measure import Table, write_part
from benchmarks.running import ROOT

DOCUMENT = ROOT / "docs" / "leak-detection.md"
BEGIN, END = "<!-- Written by `make bench-leaks`. -->", "<!-- End of what is written. -->"
RULES = ROOT / "prometheus" / "rules"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leaks", description=__doc__)
    parser.add_argument("--seed", type=int, default=7, help="of the generated scenarios")
    parser.add_argument("--each", type=int, default=1, help="scenarios a family")
    parser.add_argument("--scenarios", type=Path, help="a folder of *.json.gz to use instead")
    parser.add_argument("--only", default="", help="only scenarios whose id contains this")
    parser.add_argument("--quick", action="store_true", help="the judge alone, without Prometheus")
    parser.add_argument("-v", action="store_true", help="say what was missed or called wrongly")
    chosen = parser.parse_args()

    scenarios: Iterable[Scenario]
    if chosen.scenarios:
        scenarios = (load(path) for path in sorted(chosen.scenarios.glob("*.json.gz")))
    else:
        scenarios = generate(chosen.seed, chosen.each)
    scenarios = [scenario for scenario in scenarios if chosen.only in scenario.id]
    if not scenarios:
        parser.error("no scenario to replay")

    print(f"replaying {len(scenarios)} scenarios through the rules", file=sys.stderr, flush=True)
    scores = {name: Score() for name in ((OURS,) if chosen.quick else (OURS, *COMPARED.values()))}
    rules = [*sorted(RULES.glob("*.yml")), Path(__file__).with_name("compared.yml")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found: Iterable[Firing] = map(firing, scenarios)
        if not chosen.quick:
            found = pool.map(lambda scenario: replay(with_judge(scenario), rules), scenarios)
        for scenario, alerts in zip(scenarios, found, strict=True):
            judge(scenario, alerts, scores)
    about = f"{len(scenarios)} scenarios, {next(iter(scores.values())).leaks} leaks:"
    table = Table("", HEAD, [score.row(name) for name, score in scores.items()]).body()
    print(about, "", table, sep="\n")
    if chosen.v:
        print("", *next(iter(scores.values())).notes, sep="\n")
    if not (chosen.quick or chosen.only or chosen.scenarios):
        command = f"python -m benchmarks.leaks --seed {chosen.seed} --each {chosen.each}"
        write_part(DOCUMENT, BEGIN, END, f"`{command}`, {_prometheus_version()}, {about}\n\n{table}")


def _prometheus_version() -> str:
    said = subprocess.run(["promtool", "--version"], capture_output=True, text=True, check=True).stdout
    return f"Prometheus {said.split()[2].partition('+')[0]}"


if __name__ == "__main__":
    main()
