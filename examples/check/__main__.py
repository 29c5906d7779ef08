"""`make examples-test`: every example healthy and with each of its leaks, judged by the alert rules.

Each run is recorded once a second and replayed as one scrape in 15 seconds. A healthy
run must raise no leak alert; a leaking one must have each of its leaks named by resource and component, and
nothing named that is not a consequence of it.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.leaks.judged import with_judge
from benchmarks.leaks.scenario import save
from examples.check.alerts import first_alerts
from examples.check.plan import RUNS, Named, Run
from examples.check.record import FASTER, record


@dataclass(frozen=True)
class Verdict:
    """What the rules made of a run: minute (of the replay) at which each leak was named first.

    `failure` says why there is nothing to judge.
    """

    run: Run
    named: dict[Named, int]
    failure: str = ""

    @property
    def right(self) -> bool:
        """Whether every leak was named, and nothing else."""
        return not (self.failure or self.missed or self.false)

    @property
    def missed(self) -> list[Named]:
        """Leaks that were not named."""
        return [leak for leak in self.run.must if leak not in self.named]

    @property
    def false(self) -> list[Named]:
        """Named, and neither the leak nor its consequence."""
        return [leak for leak in self.named if leak not in (*self.run.must, *self.run.may)]

    def line(self, healthy_seconds: int) -> str:
        """One line of the table."""
        if self.failure:
            return f"{self.run.id:<26}FAILED {self.failure}"
        onset = healthy_seconds * FASTER / 60
        found = [f"{name}/{part} +{minute - onset:.0f} min" for (name, part), minute in self.named.items()]
        wrong = [f"MISSED {'/'.join(leak)}" for leak in self.missed] + [
            f"FALSE {'/'.join(leak)}" for leak in self.false
        ]
        return f"{self.run.id:<26}{'; '.join([*wrong, *found]) or 'quiet'}"


def judge(run: Run, healthy_seconds: int, seconds: int, keep: Path | None) -> Verdict:
    """Record one run and ask the rules."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            scenario = with_judge(record(run, Path(folder), healthy_seconds, seconds))
    except RuntimeError as problem:
        return Verdict(run, {}, str(problem))
    if keep is not None:
        save(scenario, keep)
    return Verdict(run, {leak: minute for leak, (minute, _) in first_alerts(scenario).items()})


def judge_all(
    runs: list[Run], parallel: int, healthy_seconds: int, seconds: int, keep: Path | None
) -> Iterator[Verdict]:
    """Verdicts in the order of the plan, `parallel` runs at a time."""
    with ThreadPoolExecutor(parallel) as pool:
        yield from pool.map(lambda run: judge(run, healthy_seconds, seconds, keep), runs)


def main() -> int:
    """Run the plan; 0 when every run was judged right."""
    options = argparse.ArgumentParser(prog="python -m examples.check", description=__doc__)
    only = "runs whose name contains this; may be given again"
    options.add_argument("--only", action="append", metavar="PART", help=only)
    options.add_argument("--parallel", type=int, default=3, help="runs at a time (3)")
    healthy = "before a leak is switched on (100)"
    options.add_argument("--healthy-seconds", type=int, default=100, help=healthy)
    options.add_argument("--seconds", type=int, default=260, help="of each run (260)")
    options.add_argument("--keep", type=Path, help="folder for the recordings")
    chosen = options.parse_args()
    runs = [run for run in RUNS if any(part in run.id for part in chosen.only or [""])]
    if not runs:
        options.error(f"no run contains {' or '.join(chosen.only)}: {', '.join(run.id for run in RUNS)}")
    if chosen.keep is not None:
        chosen.keep.mkdir(parents=True, exist_ok=True)
    wrong = 0
    print(
        f"{len(runs)} runs of {chosen.seconds} s, {chosen.parallel} at a time; delays in replayed minutes",
        flush=True,
    )
    for verdict in judge_all(runs, chosen.parallel, chosen.healthy_seconds, chosen.seconds, chosen.keep):
        print(verdict.line(chosen.healthy_seconds), flush=True)
        wrong += not verdict.right
    print(f"{len(runs) - wrong} of {len(runs)} runs judged right")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
