"""`python -m benchmarks.leaks`: how well the leak rules tell leaks from health, beside others.

A run of all families writes its table into `docs/leak-detection.md`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import mean

from benchmarks.leaks.cost import RULES, measure, prometheus_version
from benchmarks.leaks.fleet import EVERYTHING, levels, shapes
from benchmarks.leaks.judge import COMPARED, HEAD, OURS, PYTHON, Score, judge
from benchmarks.leaks.replay import Firing, firing_in_python, merged, replay
from benchmarks.leaks.scenario import Scenario, generate, load, save
from benchmarks.measure import write_part
from benchmarks.running import ROOT

DOCUMENT = ROOT / "docs" / "leak-detection.md"
BEGIN, END = "<!-- Written by `make bench-leaks`. -->", "<!-- End of what is written. -->"
LEAK_RULES = [RULES / name for name in ("leak.yml", "leak_alerts.yml")]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leaks", description=__doc__)
    parser.add_argument("--seed", type=int, default=7, help="of the generated scenarios")
    parser.add_argument("--each", type=int, default=1, help="scenarios a family")
    parser.add_argument("--scenarios", type=Path, help="a folder of *.json.gz to use instead")
    parser.add_argument("--only", default="", help="only scenarios whose id contains this")
    parser.add_argument("--write", type=Path, help="write the generated scenarios to this folder and stop")
    parser.add_argument("--skip-cost", action="store_true", help="do not measure what an evaluation costs")
    parser.add_argument("--quick", action="store_true", help="the definition in Python alone, no Prometheus")
    parser.add_argument("-v", action="store_true", help="say what these rules missed or called wrongly")
    chosen = parser.parse_args()

    scenarios: Iterable[Scenario]
    if chosen.scenarios:
        scenarios = (load(path) for path in sorted(chosen.scenarios.glob("*.json.gz")))
    else:
        scenarios = generate(chosen.seed, chosen.each)
    scenarios = [scenario for scenario in scenarios if chosen.only in scenario.id]
    if not scenarios:
        parser.error("no scenario to replay")
    if chosen.write:
        chosen.write.mkdir(parents=True, exist_ok=True)
        for scenario in scenarios:
            save(scenario, chosen.write)
        return

    print(f"replaying {len(scenarios)} scenarios through the rules", file=sys.stderr, flush=True)
    scores = {name: Score() for name in ((PYTHON,) if chosen.quick else (OURS, PYTHON, *COMPARED.values()))}
    rules = [*sorted(RULES.glob("*.yml")), Path(__file__).with_name("compared.yml")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        engine: Iterable[Firing] = (
            ({} for _ in scenarios) if chosen.quick else pool.map(lambda s: replay(s, rules), scenarios)
        )
        for scenario, firing in zip(scenarios, engine, strict=True):
            judge(scenario, merged(firing, firing_in_python(scenario)), scores)
    table = [f"{len(scenarios)} scenarios, {next(iter(scores.values())).leaks} leaks:", "", HEAD]
    table += [score.row(name) for name, score in scores.items()]
    print(*table, sep="\n")
    if chosen.v:
        print("", *next(iter(scores.values())).notes, sep="\n")
    if not (chosen.skip_cost or chosen.quick):
        table += ["", "One evaluation of all rules, per trainer of 50:", ""]
        for name, fleet in (("as in the scenarios", shapes(scenarios)), ("with everything", [EVERYTHING])):
            print(f"timing the rules on trainers {name}", file=sys.stderr, flush=True)
            cost = measure(sorted(RULES.glob("*.yml")), fleet)
            ours = sum(cost[group] for group in ("trainer-leak", "leak_alerts"))
            table.append(
                f"- {name} ({mean(map(levels, fleet)):.1f} levels): {1e3 * sum(cost.values()):.2f} ms, "
                f"of that {1e3 * ours:.2f} ms for the leak rules"
            )
            print(table[-1])
    if not (chosen.skip_cost or chosen.quick or chosen.only or chosen.scenarios):
        command = f"python -m benchmarks.leaks --seed {chosen.seed} --each {chosen.each}"
        table[0] = f"`{command}`, {prometheus_version()}, {table[0]}"
        write_part(DOCUMENT, BEGIN, END, "\n".join(table))


if __name__ == "__main__":
    main()
