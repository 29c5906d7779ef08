"""The generated page: three plugins in one table, every case in another, and what went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import median

from benchmarks.cases.case import Case
from benchmarks.cases.plugins.plugin import OURS, PLUGINS, ROUND_SECONDS
from benchmarks.cases.plugins.trials import LIMIT_SECONDS, Trial, Verdict
from benchmarks.cases.score import TOP
from benchmarks.measure import Table, with_version
from heapwatch.explain.findings import size_text
from heapwatch.measure.process.memory import memory_limit

_INTRODUCTION = """# Leak cases as unit tests

<!-- Written by `make bench-cases-plugins`. -->

Each of the [leak cases](leak-cases.md) and its healthy twin as a test, with
[our marker](testing-for-leaks.md) and with two other pytest plugins that find leaks. A test of a leak
should fail, a test of a twin should pass. The last run of each counts.
{ran} of {all} cases have been run{missing}.
"""
_RULES = """## Method

The scripts loop forever and sleep in each iteration. A driver runs them in a thread of the test, with a clock
that stops between rounds. One unit of work is {seconds:g} s of the script's own time, and its sleeps
take no time. The first unit is in a fixture, so what the script imports is not growth. Each plugin runs in
its own process, for {limit:.0f} s at most. Seconds are those of the leak and of the twin, with the start
of Python and all imports, on a machine that does other things as well.

A failure counts if the plugin causes it. It is *named* when one of the first {top} things that it reports is
the right holder, type or kind of memory. It has the right *line* when one of them is a line that allocates or
keeps what leaks. Both are judged as in the [leak cases](leak-cases.md#how-it-is-scored). pytest-memray
reports only lines. A plugin that breaks, or a test that does not end, is an error: neither pass nor fail.

"""
_LIMITS = """## Limits of our marker

- A test cannot know what is kept on purpose. The twin of `token_views` also collects one small tensor a
  frame. Four of them a round are just above the 4 kB that count as growth. Such a test needs `allow`.
- A buffer with a bound passes while it fills, unless it needs more memory than the machine has when it is
  full. So the tests of `episode_infos`, `episode_storage` and `oversized_replay` pass on a machine with
  enough memory for the buffer. This one has {memory}.
- If memory outside Python objects grows, the line is not known.
- Our marker was improved with these cases, the other plugins were not. Before that, 36 of the 40 leaks failed
  and 33 were named; the leaks of `evaluation_processes`, `infos_of_infos`, `oversized_replay` and
  `trimmed_rollouts` passed.
"""


def write(path: Path, cases: Sequence[Case], results: Mapping[str, Mapping[str, Trial]]) -> None:
    """Write the page of the cases that have been run under our own plugin.

    Args:
        path: the file.
        cases: all that there are.
        results: by case and plugin; cases without ours do not count.

    """
    run = [case for case in cases if OURS.title in results.get(case.name, {})]
    if not run:
        return
    missing = [case.name for case in cases if case not in run]
    tried = {case.name: results[case.name] for case in run}
    rules = _RULES.format(seconds=ROUND_SECONDS, limit=LIMIT_SECONDS, top=TOP)
    parts = [
        _INTRODUCTION.format(
            ran=len(run), all=len(cases), missing=f"; not yet: {', '.join(missing)}" if missing else ""
        ),
        totals_table(tried).markdown(),
        cases_table(run, tried).markdown(),
        rules + "\n".join(f"- {one.title}: {one.rule}." for one in PLUGINS.values()),
        _LIMITS.format(memory=size_text(memory_limit())),
        wrong(tried),
    ]
    path.write_text("\n\n".join(part.strip() for part in parts if part) + "\n")


def totals_table(results: Mapping[str, Mapping[str, Trial]]) -> Table:
    header = "plugin | leaks that fail | named | right line | twins that pass | errors | seconds, median"
    table = Table("Plugins", header)
    for title in PLUGINS:
        trials = [trials[title] for trials in results.values() if title in trials]
        if not trials:
            continue
        leaks, twins = [trial.leak for trial in trials], [trial.twin for trial in trials]
        table.rows.append(
            [
                with_version(title, title),
                f"{sum(leak.said == 'fails' for leak in leaks)} of {len(trials)}",
                f"{sum(leak.named for leak in leaks)}",
                f"{sum(leak.line for leak in leaks)}",
                f"{sum(twin.said == 'passes' for twin in twins)} of {len(trials)}",
                f"{sum(one.said == 'error' for one in [*leaks, *twins])}",
                f"{median(one.seconds for one in [*leaks, *twins]):.0f}",
            ]
        )
    return table


def cases_table(cases: Sequence[Case], results: Mapping[str, Mapping[str, Trial]]) -> Table:
    table = Table("Cases", " | ".join(["case", *(f"{title}: leak | twin | seconds" for title in PLUGINS)]))
    for case in cases:
        row = [f"[{case.name}]({case.thread})"]
        for title in PLUGINS:
            trial = results[case.name].get(title)
            row += _cells(trial) if trial else ["", "", ""]
        table.rows.append(row)
    return table


def wrong(results: Mapping[str, Mapping[str, Trial]]) -> str:
    """Every leak that passes, every twin that fails and every error, by plugin; empty if there is none."""
    lines = []
    for title, (case, trials) in product(PLUGINS, results.items()):
        if (trial := trials.get(title)) and trial.leak.said != "fails":
            lines.append(f"- {title}, {case}: the leak {_of(trial.leak)}")
        if trial and trial.twin.said != "passes":
            lines.append(f"- {title}, {case}: the twin {_of(trial.twin)}")
    return "\n".join(["## Wrong results", "", *lines]) if lines else ""


def _cells(trial: Trial) -> list[str]:
    leak = trial.leak.said if trial.leak.said == "fails" else f"**{trial.leak.said}**"
    leak += (", named" if trial.leak.named else "") + (", line" if trial.leak.line else "")
    twin = trial.twin.said if trial.twin.said == "passes" else f"**{trial.twin.said}**"
    return [leak, twin, f"{trial.leak.seconds:.0f}, {trial.twin.seconds:.0f}"]


def _of(verdict: Verdict) -> str:
    if verdict.said == "error":
        return f"is an error: {verdict.words}"
    return f"{verdict.said} ({verdict.words})" if verdict.words else verdict.said
