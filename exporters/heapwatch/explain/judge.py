"""Which of the growing containers are leaks, and how much of the process's growth they account for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heapwatch.explain.findings import Explanation, Finding, FindingKind, Verdict, ranked, size_text
from heapwatch.explain.inventory import Known
from heapwatch.explain.series import Growth, Series
from heapwatch.explain.sites import Site
from heapwatch.explain.weigh import NOTHING_SEEN, Look

WARM_UP_SHARE = 0.25  # of the time watched, its first part is left out
WARM_UP_SECONDS = 60.0  # at most
TOO_EARLY_SECONDS = 40.0
_SHORTEST_SPAN = 20.0
_CAREFUL_SPAN = 120.0  # for what has grown by little
_LITTLE_BYTES = 8e6
_LITTLE_SHARE = 0.02
_HORIZON_MINUTES = 7 * 24 * 60.0  # what fills the memory within a week matters
_HOURLY_SHARE = 0.2  # and so does what adds a fifth of the process an hour
_PATIENCE_SPAN = 240.0  # for a container that the program also empties
_NOTED_SHARE = 0.02
_PAST_BOUND = 1.05
_MOST_FINDINGS = 20
_EXPLAINED = 0.5


@dataclass(frozen=True)
class Candidate:
    """A growing container with everything known about it.

    Attributes:
        known: the container.
        growth: of its items, or of its bytes where these are read.
        look: what its items are.
        capacity: the bound found for it.
        site: where it grows.
        trimmed: whether the program also takes items out.
        holders: what holds it.
        remedy: what to do.

    """

    known: Known
    growth: Growth
    look: Look = NOTHING_SEEN
    capacity: int | None = None
    site: Site | None = None
    trimmed: bool = False
    holders: tuple[str, ...] = ()
    remedy: str | None = None

    @property
    def bytes(self) -> float | None:
        """What all such containers hold; None while that is not measured."""
        known = self.known
        if known.in_bytes:
            return (known.items.last or 0.0) * known.multiplicity
        return known.held.last

    @property
    def bytes_per_minute(self) -> float:
        """Growth, from the items' pace and the bytes of one; 0 while that is not measured."""
        known = self.known
        if known.in_bytes:
            return 60 * self.growth.per_second * known.multiplicity
        if not known.held.last or not known.weighed_items:
            filled = known.items.last if known.kind == "ring" else 0.0
            return 60 * self.growth.per_second * (known.held.last or 0.0) / filled if filled else 0.0
        return 60 * self.growth.per_second * known.held.last / known.weighed_items


@dataclass(frozen=True)
class Levels:
    """The process's memory over time, in bytes, and the limit that ends it."""

    resident: Series
    limit: int
    began: float
    now: float

    @property
    def start(self) -> float:
        """From when on growth counts: what came before is warm-up."""
        return self.began + min(WARM_UP_SECONDS, WARM_UP_SHARE * (self.now - self.began))

    def matters(self, bytes_per_minute: float) -> bool:
        """Whether growth of this pace is worth a word: it ends the process, or multiplies it, in time."""
        resident = self.resident.last or 0.0
        left = max(0.0, self.limit - resident)
        return (
            bytes_per_minute * _HORIZON_MINUTES >= left or bytes_per_minute * 60 >= _HOURLY_SHARE * resident
        )


def explain(
    levels: Levels, candidates: Sequence[Candidate], others: Sequence[Finding] = (), rounds: int = 1
) -> Explanation:
    """Judge what grows.

    Args:
        levels: of the process.
        candidates: growing containers.
        others: what was found beside containers, their share not yet told.
        rounds: walks through the program's objects so far.

    """
    seconds = levels.now - levels.began
    resident = levels.resident.growth(levels.start)
    pace = 60 * resident.per_second
    findings: list[Finding] = []
    met: set[int] = set()
    for candidate in sorted(candidates, key=lambda one: (-one.bytes_per_minute, len(one.known.path))):
        shared = bool(candidate.look.ids & met)
        met |= candidate.look.ids
        findings.append(_finding(candidate, levels, pace, shared))
    findings = _inferred(findings, candidates, levels, resident)
    findings += [replace(other, share=_share(other.bytes_per_minute, pace)) for other in others]
    rest = pace - sum(finding.bytes_per_minute for finding in findings)
    if rest > _EXPLAINED * pace and _goes_on(resident) and levels.matters(rest) and rounds:
        findings.append(_native(rest, pace))
    worth = [finding for finding in findings if _is_worth_telling(finding, levels, pace)]
    explained = sum(finding.bytes_per_minute for finding in worth if finding.kind != "native")
    share = min(1.0, explained / pace) if pace > 0 else 1.0
    verdict, detail = _verdict(levels, resident, worth, seconds, rounds)
    growth = pace if pace > 0 else 0.0
    return Explanation(verdict, seconds, growth, share, ranked(worth)[:_MOST_FINDINGS], detail)


def _finding(candidate: Candidate, levels: Levels, pace: float, shared: bool) -> Finding:
    known, growth = candidate.known, candidate.growth
    items = None if known.in_bytes else round((known.items.last or 0.0) * known.multiplicity)
    capacity = candidate.capacity
    bounded = capacity is not None and (known.items.last or 0.0) <= _PAST_BOUND * capacity
    rate = 0.0 if shared else candidate.bytes_per_minute
    kind: FindingKind = "buffer" if bounded else "container"
    matters = levels.matters(candidate.bytes_per_minute)
    return Finding(
        kind=kind,
        path=known.path,
        type=f"{known.type_name} of {candidate.look.item_type}"
        if candidate.look.item_type
        else known.type_name,
        items=items,
        bytes=None if candidate.bytes is None else round(candidate.bytes),
        items_per_minute=None if known.in_bytes else 60 * growth.per_second * known.multiplicity,
        bytes_per_minute=rate,
        share=_share(rate, pace),
        capacity_items=round(capacity * known.multiplicity) if bounded and capacity is not None else None,
        site=candidate.site,
        holders=candidate.holders,
        remedy=candidate.remedy,
        is_leak=not bounded and growth.rising and matters and growth.span >= _span_wanted(candidate, levels),
    )


def _span_wanted(candidate: Candidate, levels: Levels) -> float:
    if candidate.trimmed:
        return _PATIENCE_SPAN
    grown = candidate.bytes_per_minute / 60 * candidate.growth.span
    little = max(_LITTLE_BYTES, _LITTLE_SHARE * (levels.resident.last or 0.0))
    return _CAREFUL_SPAN if grown < little else _SHORTEST_SPAN


def _inferred(
    findings: list[Finding], candidates: Sequence[Candidate], levels: Levels, resident: Growth
) -> list[Finding]:
    """Give growth that nothing measured explains to the container whose items cannot be measured."""
    pace = 60 * resident.per_second
    rest = pace - sum(finding.bytes_per_minute for finding in findings)
    if not (_goes_on(resident) and rest > _EXPLAINED * pace and levels.matters(rest)):
        return findings
    by_path = {candidate.known.path: candidate for candidate in candidates}
    opaque = [
        (at, finding)
        for at, finding in enumerate(findings)
        if finding.kind == "container"
        and by_path[str(finding.path)].look.opaque
        and by_path[str(finding.path)].growth.rising
    ]
    if not opaque:
        return findings
    at, chosen = max(
        opaque, key=lambda entry: (by_path[str(entry[1].path)].look.graph, entry[1].items_per_minute or 0.0)
    )
    rate = chosen.bytes_per_minute + rest
    grown = rest / 60 * by_path[str(chosen.path)].growth.span
    findings[at] = replace(
        chosen,
        bytes=round((chosen.bytes or 0) + grown),
        bytes_per_minute=rate,
        share=_share(rate, pace),
        inferred=True,
        is_leak=by_path[str(chosen.path)].growth.span >= _SHORTEST_SPAN,
    )
    return findings


def _native(rest: float, pace: float) -> Finding:
    return Finding(
        kind="native",
        path=None,
        type="memory that no Python object accounts for",
        items=None,
        bytes=None,
        items_per_minute=None,
        bytes_per_minute=rest,
        share=_share(rest, pace),
        is_leak=True,
    )


def _goes_on(growth: Growth) -> bool:
    return growth.rising and growth.span >= TOO_EARLY_SECONDS


def _share(rate: float, pace: float) -> float:
    return min(1.0, rate / pace) if pace > 0 else 0.0


def _is_worth_telling(finding: Finding, levels: Levels, pace: float) -> bool:
    if finding.is_leak:
        return True
    if finding.kind == "buffer" and finding.items and finding.bytes and finding.capacity_items:
        full = finding.bytes / finding.items * finding.capacity_items
        if full > levels.limit - (levels.resident.last or 0.0) + finding.bytes:
            return True
    return levels.matters(finding.bytes_per_minute) and finding.share >= _NOTED_SHARE


def _verdict(
    levels: Levels, resident: Growth, findings: Sequence[Finding], seconds: float, rounds: int
) -> tuple[Verdict, str]:
    if any(finding.is_leak for finding in findings):
        return "leak", ""
    if seconds < TOO_EARLY_SECONDS or not rounds:
        return "too early", "Ask again in a minute."
    pace = 60 * resident.per_second
    buffers = [finding for finding in findings if finding.kind == "buffer"]
    if buffers and (not levels.matters(pace) or _rate(buffers) >= _EXPLAINED * pace):
        return "filling", ""
    if not levels.matters(pace):
        return "healthy", f"Memory stands at {size_text(levels.resident.last or 0.0)}."
    if resident.rising:
        return "too early", "Memory rises steadily, and has not done so for long enough to call it a leak."
    return "warm-up", ""


def _rate(findings: Sequence[Finding]) -> float:
    return sum(finding.bytes_per_minute for finding in findings)
