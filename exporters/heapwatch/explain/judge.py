"""Decides which growing containers are leaks, and how much of the process's growth they explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from heapwatch.analysis.leak import MATERIAL_BYTES, WINDOWS
from heapwatch.explain.evidence import Candidate, Levels
from heapwatch.explain.findings import (
    Explanation,
    Finding,
    FindingKind,
    Verdict,
    described,
    ranked,
    size_text,
)
from heapwatch.explain.inventory import KnownContainer
from heapwatch.explain.rest import EXPLAINED, goes_on, inferred, rate_of, unnamed, with_types, workers
from heapwatch.explain.series import FloorGrowth
from heapwatch.explain.steadiness import is_steady

TOO_EARLY_SECONDS = 40.0
_SHORTEST_SPAN = 30.0
_CAREFUL_SPAN = 120.0  # for a container that has grown by little
_LITTLE_BYTES = 8e6
_LITTLE_SHARE = 0.02
_PATIENCE_SPAN = 60 * WINDOWS[0]  # for a container that the program cuts to an unknown length
_REMOVED_SPAN = 60.0  # for a container from which the program also removes items
_NOTED_SHARE = 0.02
_MOST_FINDINGS = 20
_JUDGED_SECONDS = 60 * 1.5 * WINDOWS[1]  # after which steady growth that is no leak is called a warm-up


def explain(
    levels: Levels,
    candidates: Sequence[Candidate],
    types: Sequence[Finding] = (),
    rounds: int = 1,
    refused_seconds: float | None = None,
) -> Explanation:
    """Judge what grows.

    Args:
        levels: memory of the process over time.
        candidates: growing containers.
        types: growing types, for the growth that no container explains.
        rounds: complete walks through the program's objects so far.
        refused_seconds: how long a count of all objects by type would have stopped the program, if it was
            refused for that.

    """
    seconds = levels.now - levels.began
    settled = levels.now - max(levels.began, levels.memory.settled_at)
    own, pace = levels.own, levels.per_minute
    findings: list[Finding] = []
    met: set[int] = set()
    for candidate in sorted(candidates, key=lambda one: (-one.bytes_per_minute, len(one.known.path))):
        findings.append(_finding(candidate, levels, shared=bool(candidate.traits.ids & met)))
        met |= candidate.traits.ids
    findings += workers(levels)
    findings = inferred(findings, candidates, levels)
    findings = with_types(findings, types, levels)
    findings += unnamed(findings, levels, refused_seconds)
    findings = [replace(found, share=_share(found.bytes_per_minute, pace)) for found in findings]
    worth = [found for found in findings if _is_worth_reporting(found, levels)]
    share = (
        min(1.0, rate_of([found for found in worth if found.kind != "native"]) / pace) if pace > 0 else 1.0
    )
    verdict, detail = _verdict(levels, own, worth, settled, rounds)
    return Explanation(verdict, seconds, pace, share, ranked(worth)[:_MOST_FINDINGS], detail)


def is_unexplained(explanation: Explanation, levels: Levels) -> bool:
    """Whether material growth goes on that no finding names, so that a search is worth its cost."""
    measured = [one for one in explanation.findings if one.kind != "native" and not one.inferred]
    pace = explanation.growth_bytes_per_minute
    rest = pace - rate_of(measured)
    if rest <= EXPLAINED * pace or not goes_on(levels.own):
        return False
    return levels.matters(rest) and rest / 60 * levels.own.span >= MATERIAL_BYTES


def _finding(candidate: Candidate, levels: Levels, *, shared: bool) -> Finding:
    known, growth, bounded = candidate.known, candidate.growth, candidate.bounded
    kind: FindingKind = "buffer" if bounded else "container"
    long_enough = growth.span >= _span_wanted(candidate, levels)
    pace = candidate.bytes_per_minute
    certain = candidate.rising and long_enough and pace / 60 * growth.span >= MATERIAL_BYTES
    leaks = not bounded and certain and levels.matters(pace)
    capacity = candidate.capacity if bounded else None
    return Finding(
        kind=kind,
        path=known.path,
        type=" of ".join(filter(None, (known.type_name, candidate.traits.item_type))),
        items=round((known.items.last or 0.0) * known.multiplicity) if known.counted else None,
        bytes=None if candidate.bytes is None else round(candidate.bytes),
        items_per_minute=60 * growth.per_second * known.multiplicity if known.counted else None,
        # Items that two containers share count once.
        bytes_per_minute=0.0 if shared else candidate.bytes_per_minute,
        share=0.0,
        capacity_items=None if capacity is None else round(capacity * known.multiplicity),
        site=candidate.site,
        holders=candidate.holders,
        remedy=candidate.remedy,
        is_leak=leaks,
        steady=_is_steady(known, levels),
    )


def _is_steady(known: KnownContainer, levels: Levels) -> bool:
    """Whether its items or its bytes keep their pace: episodes that get longer become fewer."""
    paces = (levels.memory.steps, levels.memory.cycles)
    return any(is_steady(level, paces, levels.start) for level in (known.items, known.held))


def _span_wanted(candidate: Candidate, levels: Levels) -> float:
    if candidate.emptied == "trimmed":
        return _PATIENCE_SPAN
    if candidate.emptied == "some":
        return _REMOVED_SPAN
    grown = candidate.bytes_per_minute / 60 * candidate.growth.span
    little = max(_LITTLE_BYTES, _LITTLE_SHARE * levels.resident)
    return _CAREFUL_SPAN if grown < little else _SHORTEST_SPAN


def _share(rate: float, pace: float) -> float:
    return min(1.0, rate / pace) if pace > 0 else 0.0


def _is_worth_reporting(finding: Finding, levels: Levels) -> bool:
    if finding.is_leak:
        return True
    if finding.kind == "buffer" and not _fits(finding, levels):
        return True
    return levels.matters(finding.bytes_per_minute) and finding.share >= _NOTED_SHARE


def _fits(finding: Finding, levels: Levels) -> bool:
    """Whether the memory suffices for a buffer when it is full."""
    if not (finding.items and finding.bytes and finding.capacity_items):
        return True
    full = finding.bytes / finding.items * finding.capacity_items
    return full <= levels.memory.limit - levels.resident + finding.bytes


def _verdict(
    levels: Levels, own: FloorGrowth, findings: Sequence[Finding], seconds: float, rounds: int
) -> tuple[Verdict, str]:
    buffers = [finding for finding in findings if finding.kind == "buffer"]
    filling = [finding for finding in buffers if not _is_full(finding)]
    crowded = any(not _fits(finding, levels) for finding in filling)
    room = f"{size_text(levels.memory.limit - levels.resident)} of memory is left." if crowded else ""
    if any(finding.is_leak for finding in findings):
        return "leak", room
    if seconds < TOO_EARLY_SECONDS or not rounds:
        return "too early", f"A verdict takes {TOO_EARLY_SECONDS:.0f} s or more."
    pace = levels.per_minute
    matters = levels.matters(pace) and rate_of(buffers) < EXPLAINED * pace
    if filling and (crowded or not matters):
        return "filling", room
    if not matters:
        return "healthy", f"Memory use is {size_text(levels.resident)}."
    rising = own.rising or levels.memory.workers.growth(levels.settled).rising
    if rising and seconds < _JUDGED_SECONDS:
        detail = f"Memory grows by {size_text(pace)}/min, but not yet for long enough to call it a leak."
        first = next(iter(ranked(findings)), None)
        if first is not None and (first.kind != "native" or first.remedy):
            detail += f" So far, {described(first)}"
        return "too early", detail
    return "warm-up", ""


def _is_full(finding: Finding) -> bool:
    return finding.capacity_items is not None and (finding.items or 0) >= finding.capacity_items
