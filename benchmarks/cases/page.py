"""The page, from the stored results: every tool in one table, every case in another, and what was wrong."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from benchmarks.cases.case import Case, load_all
from benchmarks.cases.results import RESULTS, Result, load
from benchmarks.cases.results import totals as totals_of
from benchmarks.cases.score import TOP, Total, goals
from benchmarks.cases.tools.registry import OURS, RULES
from benchmarks.cases.tools.traced import BYTES_PER_MINUTE, SNAPSHOTS
from benchmarks.measure import Table
from benchmarks.running import ROOT
from docs.generated import write_or_check

PAGE = ROOT / "docs" / "leak-cases.md"

_INTRODUCTION = """# Leak cases

<!-- Written by `make bench-cases` from the results in `benchmarks/cases/results`. -->

Leaks that people reported in their RL and training projects, rebuilt as small scripts with the real libraries
(`benchmarks/cases/suite`). Each has a healthy twin: the same script after the fix. The scripts declare
nothing. Each ran for {seconds} s under each tool.
The last run of each case counts. {ran} of {all} cases have been run{missing}.
"""

_RULES = """## How it is scored

The first {top} findings of a tool count:

- *detected*: the tool reports a finding.
- *named*: one of the findings has the right holder or type, or the right kind of memory if nothing in Python
  holds it.
- *right line*: one of the findings names a line that allocates or keeps what leaks.
- *explained*: the share of the growth that rightly named findings account for. Some tools report no share.
- *twin*: every finding on a twin is wrong.

If a bound ends the growth, but needs more memory than the machine has, a tool may report that instead.

tracemalloc lists what grows. It is read after {looks} of the time. A finding is what grew between
all of these readings, by {least:g} MB a minute or more. In detail:

"""


def render(cases: Sequence[Case], results: Mapping[str, Result]) -> str:
    """The page of the cases that have been run under our own tool; empty where none has.

    Args:
        cases: all that there are.
        results: by case; those that lack ours do not count.

    """
    known = {case.name for case in cases}
    results = {name: one for name, one in results.items() if name in known and OURS in one.scores}
    totals = totals_of(results, RULES)
    if OURS not in totals:
        return ""
    missing = [case.name for case in cases if case.name not in results]
    lengths = sorted({result.seconds for result in results.values()})
    rules = _RULES.format(
        top=TOP, looks=", ".join(f"{share:.0%}" for share in SNAPSHOTS), least=BYTES_PER_MINUTE / 1e6
    )
    parts = [
        _INTRODUCTION.format(
            seconds=" to ".join(f"{length:.0f}" for length in dict.fromkeys((lengths[0], lengths[-1]))),
            ran=len(results),
            all=len(cases),
            missing=f"; not yet: {', '.join(missing)}" if missing else "",
        ),
        tools_table(totals).markdown(),
        "\n".join(
            f"- {'' if goal.holds else '**missed** '}{goal.text}: {goal.measured}"
            for goal in goals(totals[OURS])
        ),
        cases_table([case for case in cases if case.name in results], results).markdown(),
        rules + "\n".join(f"- {tool}: {rule}." for tool, rule in RULES.items()),
        failures(totals),
    ]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def tools_table(totals: Mapping[str, Total]) -> Table:
    header = "tool | cases | detected | named | right line | explained, median | seconds, median"
    table = Table("Tools", f"{header} | twins with a finding")
    for tool, total in totals.items():
        seconds = total.median_seconds
        rates = [f"{total.rate(name):.0%}" for name in ("detected", "named", "right_line")]
        shown = "" if seconds is None else f"{seconds:.0f}"
        twins = f"{total.twins_with_findings} of {len(total.scores)}"
        table.rows.append([tool, str(len(total.scores)), *rates, f"{total.median_share:.0%}", shown, twins])
    return table


def cases_table(cases: Sequence[Case], results: Mapping[str, Result]) -> Table:
    header = "case | library | detected | named | line | explained | reported after (s)"
    table = Table(f"Cases, as {OURS} reports them", f"{header} | ran for (s) | findings on twin")
    for case in cases:
        result = results[case.name]
        score = result.scores[OURS]
        table.rows.append(
            [
                f"[{case.name}]({case.thread}): {case.leak}",
                result.library,
                *("yes" if reached else "no" for reached in (score.detected, score.named, score.right_line)),
                f"{score.share:.0%}",
                "" if score.seconds is None else f"{score.seconds:.0f}",
                f"{result.seconds:.0f}",
                f"{score.findings_on_twin}",
            ]
        )
    return table


def failures(totals: Mapping[str, Total]) -> str:
    """What kept tools from reporting, a line each; empty where nothing did."""
    lines = [
        f"- {score.case}: {failure}"
        for total in totals.values()
        for score in total.scores
        for failure in score.failures
    ]
    return "\n".join(["## Runs that failed", "", *lines]) if lines else ""


def current() -> str:
    cases = load_all()
    return render(cases, load(RESULTS, [case.name for case in cases]))


if __name__ == "__main__":
    sys.exit(write_or_check("benchmarks.cases.page", {PAGE: current()}))
