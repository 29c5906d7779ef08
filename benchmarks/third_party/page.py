"""docs/third-party-trainers.md, from the latest run of each trainer."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.measure import Table, machine
from benchmarks.third_party.catalog import LEAK_MINUTES, TRAINERS, Trainer
from benchmarks.third_party.observation import MOST_NOTICES, Observation
from heapwatch.text.markdown import escaped
from heapwatch.text.numbers import size, size_change

Seen = dict[tuple[str, bool], Observation]  # by name, and whether it leaks


def document(seen: Seen) -> str:
    return f"""# Third-party trainers

Trainers as their authors write them, from public packages at pinned versions. They are started with the
README's snippet or an adapter's line while the stack runs. Written by `make bench-third-party`
(`python -m benchmarks.third_party`) on {machine()}.
The latest run of each trainer counts. Several run at a time. Memory is the sum over a trainer and its
child processes; pages that they share count in each.

## Healthy

No alert of any kind, no line of the logger `heapwatch` at WARNING or above, at most
{MOST_NOTICES} lines at INFO, and no port problem.

{healthy(seen).body()}

## With an undeclared leak

A leak must be reported and named within {LEAK_MINUTES:.0f} minutes of the first answer of the trainer.
*Named by* is the alert's text or `/explain`.

{leaking(seen).body()}
"""


def healthy(seen: Seen) -> Table:
    columns = "trainer | what | watched by | memory | minutes | day | alerts, log lines, port problems"
    table = Table("Healthy", columns)
    for trainer, run in _runs(seen, leaking=False):
        wrong = "; ".join(run.problems(trainer)) or "none"
        watched = "snippet" if trainer.watched == "snippet" else f"adapter `{trainer.watched}`"
        ran = [_memory(run), f"{run.minutes:.0f}", run.day]
        table.rows.append([trainer.name, trainer.what, watched, *ran, escaped(wrong)])
    return table


def leaking(seen: Seen) -> Table:
    columns = "trainer | leak | rate | memory | reported | named | named by | day | verdict"
    table = Table("Leaking", columns)
    for trainer, run in _runs(seen, leaking=True):
        by_alert = any(alert.named is not None for alert in run.alerts)
        table.rows.append(
            [
                trainer.name,
                trainer.leak.what,
                trainer.leak.rate,
                f"{_memory(run)}, {size_change(run.growth)}/min",
                _minutes(run.reported),
                _minutes(run.named),
                "alert" if by_alert else "/explain" if run.explained is not None else "-",
                run.day,
                escaped("; ".join(run.problems(trainer)) or "right"),
            ]
        )
    return table


def _runs(seen: Seen, *, leaking: bool) -> Iterable[tuple[Trainer, Observation]]:
    return ((one, seen[one.name, leaking]) for one in TRAINERS if (one.name, leaking) in seen)


def _memory(run: Observation) -> str:
    return size(run.memory[1])


def _minutes(when: float | None) -> str:
    return "-" if when is None else f"{when:.1f} min"
