"""The tables of docs/strangers.md."""

from __future__ import annotations

import platform
from collections.abc import Iterable

import psutil

from benchmarks.third_party import judge
from benchmarks.third_party.catalog import FAST_MINUTES, SLOW_MINUTES, STRANGERS, Stranger
from benchmarks.third_party.observation import Observation

_HEALTHY = (
    "| trainer | watched by | memory | minutes | day | alerts, log lines, port trouble |\n"
    "|---|---|---|---|---|---|"
)
_LEAKING = (
    "| trainer | leak | rate | memory | reported | named | named by | alerts sent | day | verdict |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


def document(seen: dict[tuple[str, bool], Observation]) -> str:
    """The whole page, of the latest run of each trainer."""
    return "\n".join(
        [
            "# Public trainers",
            "",
            "Trainers as their authors write them, from public packages at pinned versions, started with the",
            "README's snippet or an adapter's one line beside a running stack. Written by `make strangers`",
            f"(`python -m benchmarks.third_party`) on {_machine()}.",
            "Of each trainer the latest run counts; several run at a time. Memory is that of a trainer and",
            "its child processes together, pages that they share counted in each.",
            "",
            "## Healthy",
            "",
            "No alert of any kind, no line of the logger `heapwatch` at WARNING or above and at most",
            f"{judge.MOST_NOTICES} at INFO, no port trouble.",
            "",
            *healthy(seen),
            "",
            "## With a leak that nothing declares",
            "",
            f"To be reported and named within {FAST_MINUTES:.0f} minutes when fast (more than 1 % of the",
            "level per minute, or a container that grows with every episode),",
            f"else within {SLOW_MINUTES:.0f}. Minutes count from the first answer of the trainer.",
            "*Named by* is the alert's text or `/explain`.",
            "",
            *leaking(seen),
            "",
            "## Versions",
            "",
            *(f"- {one.name}: {one.what}; {_versions(one, seen)}" for one in STRANGERS),
            "",
        ]
    )


def healthy(seen: dict[tuple[str, bool], Observation]) -> list[str]:
    """Rows of the healthy runs."""
    rows = [_HEALTHY]
    for stranger, run in _runs(seen, leaking=False):
        wrong = "; ".join(judge.problems(stranger, run)) or "none"
        watched = "snippet" if stranger.watched == "snippet" else f"adapter `{stranger.watched}`"
        cells = [stranger.name, watched, _memory(run), f"{run.minutes:.0f}", run.day, _cell(wrong)]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def leaking(seen: dict[tuple[str, bool], Observation]) -> list[str]:
    """Rows of the leaking runs."""
    rows = [_LEAKING]
    for stranger, run in _runs(seen, leaking=True):
        wrong = "; ".join(judge.problems(stranger, run)) or "right"
        by_alert = any(alert.named is not None for alert in run.alerts)
        by = "alert" if by_alert else "/explain" if run.explained is not None else "-"
        sent = sum(alert.notified for alert in run.alerts)
        leak = stranger.leak
        cells = [
            stranger.name,
            leak.what,
            f"{leak.rate}{'' if leak.fast else ' (slow)'}",
            f"{_memory(run)}, {run.growth / 1e6:+.1f} MB/min",
            _minutes(judge.reported(run)),
            _minutes(judge.named(run)),
            by,
            str(sent),
            run.day,
            _cell(wrong),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def _runs(
    seen: dict[tuple[str, bool], Observation], *, leaking: bool
) -> Iterable[tuple[Stranger, Observation]]:
    return ((one, seen[one.name, leaking]) for one in STRANGERS if (one.name, leaking) in seen)


def _versions(stranger: Stranger, seen: dict[tuple[str, bool], Observation]) -> str:
    run = seen.get((stranger.name, False)) or seen.get((stranger.name, True))
    return run.versions if run else stranger.versions


def _memory(run: Observation) -> str:
    return f"{run.memory[1] / 1e6:.0f} MB"


def _minutes(when: float | None) -> str:
    return "-" if when is None else f"{when:.1f} min"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _machine() -> str:
    memory = psutil.virtual_memory().total / 2**30
    return f"{psutil.cpu_count()} cores, {memory:.0f} GiB of memory, CPython {platform.python_version()}"
