"""What a tool said of a script, held against what the script does. One rule for every tool."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median

from benchmarks.cases.case import Case
from benchmarks.measure import Claim

TOP = 3


@dataclass(frozen=True)
class ToolFinding:
    """One thing that a tool calls a leak.

    Args:
        path: who holds it; None where the tool does not say.
        type: what it is; None where it names none.
        kind: which sort of memory; None where it names none.
        sites: file and line of each place that the tool names.
        share: of the growth, 0 to 1; None where the tool does not say.
        bounded: it has an end, and the tool says so.

    """

    path: str | None = None
    type: str | None = None
    kind: str | None = None
    sites: tuple[tuple[str, int], ...] = ()
    share: float | None = None
    bounded: bool = False


@dataclass(frozen=True)
class Report:
    """A tool's findings, most first; the seconds from the start until it reported them; why it failed."""

    findings: tuple[ToolFinding, ...] = ()
    seconds: float | None = None
    failure: str | None = None


@dataclass(frozen=True)
class Score:
    """One tool on one case: on the script that leaks, and on its twin."""

    case: str
    detected: bool
    named: bool
    right_line: bool
    share: float
    seconds: float | None
    findings_on_twin: int
    failures: tuple[str, ...] = ()


@dataclass
class Total:
    """One tool over all cases; shares are 0 to 1."""

    scores: list[Score] = field(default_factory=list)

    def rate(self, name: str) -> float:
        """Share of the cases of which `detected`, `named` or `right_line` holds."""
        return mean(bool(getattr(score, name)) for score in self.scores) if self.scores else 0.0

    @property
    def median_share(self) -> float:
        """Share of growth explained at the median case."""
        return median(score.share for score in self.scores) if self.scores else 0.0

    @property
    def median_seconds(self) -> float | None:
        """Median of the seconds until a leak was reported; None if none was."""
        reported = [score.seconds for score in self.scores if score.seconds is not None]
        return median(reported) if reported else None

    @property
    def twins_with_findings(self) -> int:
        """Healthy twins of which the tool reports anything."""
        return sum(score.findings_on_twin > 0 for score in self.scores)


def judge(case: Case, leak: Report, twin: Report) -> Score:
    """Score a tool's two reports.

    A leak is detected when the tool reports a finding at all; one that says it has an end counts where the
    case has one. It is named, and its line is right, when one of the first three findings says so. Explained
    is the share of growth that rightly named findings among them account for. On a twin, every finding that
    has no end counts.
    """
    counted = [found for found in leak.findings if case.bounded or not found.bounded]
    first = counted[:TOP]
    named = [found for found in first if is_named(case, found)]
    return Score(
        case=case.name,
        detected=bool(counted),
        named=bool(named),
        right_line=any(has_right_line(case, found) for found in first),
        share=min(1.0, sum(found.share or 0.0 for found in named)),
        seconds=leak.seconds if counted else None,
        findings_on_twin=sum(not found.bounded for found in twin.findings),
        failures=tuple(report.failure for report in (leak, twin) if report.failure),
    )


def is_named(case: Case, found: ToolFinding) -> bool:
    return (
        _matches(case.paths, found.path)
        or _matches(case.types, found.type)
        or (found.kind is not None and found.kind in case.kinds)
    )


def has_right_line(case: Case, found: ToolFinding) -> bool:
    return any(Path(file).name == "train.py" and line in case.lines for file, line in found.sites)


def _matches(patterns: Iterable[str], text: str | None) -> bool:
    return text is not None and any(re.search(pattern, text) for pattern in patterns)


def goals(total: Total) -> list[Claim]:
    rates = [("detected", "detected", 0.95), ("named", "named", 0.90), ("right line", "right_line", 0.75)]
    reached = [
        Claim(f"{text}, at least {wanted:.0%}", f"{total.rate(name):.0%}", total.rate(name) >= wanted)
        for text, name, wanted in rates
    ]
    share, twins = total.median_share, total.twins_with_findings
    reached.append(Claim("growth explained at the median, at least 80%", f"{share:.0%}", share >= 0.8))
    reached.append(Claim("twins with a finding, none", str(twins), twins == 0))
    return reached
