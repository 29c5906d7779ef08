"""Decides which growing containers are leaks, and how much of the process's growth they explain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from heapwatch.analysis.leak import MATERIAL_BYTES, WINDOWS
from heapwatch.analysis.process import MATURE_MINUTES
from heapwatch.analysis.verdict import Word
from heapwatch.explain.evidence import Candidate, Levels
from heapwatch.explain.findings import (
    Explanation,
    Finding,
    FindingKind,
    ranked,
    size_text,
)
from heapwatch.explain.places import KnownContainer
from heapwatch.explain.residual import EXPLAINED, continues, inferred, rate_of, unnamed, with_types, workers
from heapwatch.explain.series import is_steady
from heapwatch.explain.weigh import shared_share

TOO_EARLY_SECONDS = 40.0
_SHORTEST_SPAN = 30.0
_CAREFUL_SPAN = 120.0  # for a container that has grown by little
_LITTLE_BYTES = 8e6
_LITTLE_SHARE = 0.02
_PATIENCE_SPAN = 60 * WINDOWS[0]  # for a container that the program cuts to an unknown length
_REMOVED_SPAN = 60.0  # for a container from which the program also removes items
_NOTED_SHARE = 0.02
_NOISE_BYTES = 1e6  # a smaller rise is not mentioned, also where it is even
_MOST_FINDINGS = 20
_GROW_ON = ("too early", "growing", "will not fit", "leak")
_GOES_ON_SECONDS = 60.0 * MATURE_MINUTES  # after which growth that has not slowed down is said to go on


def explain(
    levels: Levels,
    candidates: Sequence[Candidate],
    types: Sequence[Finding] = (),
    rounds: int = 1,
    refused_seconds: float | None = None,
    counted_seconds: float = 0.0,
    walked: tuple[int, int] = (0, 0),
) -> Explanation:
    """Judge what grows.

    Args:
        levels: memory of the process over time.
        candidates: growing containers.
        types: growing types, for the growth that no container explains.
        rounds: complete walks through the program's objects so far.
        refused_seconds: how long a count of all objects by type would have stopped the program, if it was
            refused for that.
        counted_seconds: for how long objects have been counted by type.
        walked: number of objects that the first walk has visited, and of those that are waiting.

    """
    seconds = levels.now - levels.began
    settled = levels.now - max(levels.began, levels.memory.settled_at)
    rate = levels.per_minute
    findings: list[Finding] = []
    seen: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda one: (-one.bytes_per_minute, len(one.known.path))):
        findings.append(_finding(candidate, levels, seen))
        seen.append(candidate)
    findings += workers(levels)
    findings = inferred(findings, candidates, levels)
    findings = with_types(findings, types, levels)
    findings += unnamed(findings, levels, refused_seconds if rounds else None, counted_seconds)
    findings = _with_shares(findings, rate)
    findings = with_room(findings, levels)
    reported = [found for found in findings if _is_worth_reporting(found, levels)]
    share = (
        min(1.0, rate_of([found for found in reported if found.kind != "native"]) / rate) if rate > 0 else 1.0
    )
    verdict, detail = _verdict(levels, reported, settled, None if rounds else walked)
    left = levels.time_left if verdict in _GROW_ON else None
    return Explanation(verdict, seconds, rate, share, ranked(reported)[:_MOST_FINDINGS], detail, left)


def is_unexplained(explanation: Explanation, levels: Levels) -> bool:
    """Whether material growth goes on that no finding names, so that a search is worth its cost."""
    measured = [one for one in explanation.findings if one.kind != "native" and not one.inferred]
    rate = explanation.growth_bytes_per_minute
    residual = rate - rate_of(measured)
    if residual <= EXPLAINED * rate or not continues(levels.own):
        return False
    return levels.matters(residual) and residual / 60 * levels.own.span >= MATERIAL_BYTES


def _finding(candidate: Candidate, levels: Levels, seen: Sequence[Candidate]) -> Finding:
    known, growth, bounded = candidate.known, candidate.growth, candidate.bounded
    shared, owner = max(
        ((_shared(candidate, one), one.known.path) for one in seen),
        default=(0.0, None),
        key=lambda both: both[0],
    )
    kind: FindingKind = "buffer" if bounded else "container"
    long_enough = growth.span >= _span_wanted(candidate, levels)
    rate = candidate.bytes_per_minute
    certain = candidate.rising and long_enough and rate / 60 * growth.span >= MATERIAL_BYTES
    continues = certain and levels.matters(rate)
    capacity = candidate.capacity if bounded else None
    return Finding(
        kind=kind,
        path=known.path,
        type=" of ".join(filter(None, (known.type_name, candidate.traits.item_type))),
        items=round((known.items.last or 0.0) * known.multiplicity) if known.counted else None,
        bytes=None if candidate.bytes is None else round(candidate.bytes),
        items_per_minute=60 * growth.per_second * known.multiplicity if known.counted else None,
        # What two containers share counts once.
        bytes_per_minute=(1 - shared) * candidate.bytes_per_minute,
        share=0.0,
        capacity_items=None if capacity is None else round(capacity * known.multiplicity),
        site=candidate.site,
        holders=candidate.holders,
        remedy=candidate.remedy,
        is_leak=continues and not bounded,
        steady=_is_steady(known, levels),
        fits=not continues if bounded else None,  # a sure growth is compared with the memory by `with_room`
        shared_with=owner if shared else None,
    )


def _shared(candidate: Candidate, other: Candidate) -> float:
    """Share of the bytes of a candidate that another one has, too: 0 to 1."""
    if candidate.traits.ids & other.traits.ids:
        return 1.0
    return shared_share(list(candidate.parts), list(other.parts))


def _is_steady(known: KnownContainer, levels: Levels) -> bool:
    """Whether its items or its bytes keep their rate: episodes that get longer become fewer."""
    progress = (levels.memory.steps, levels.memory.cycles)
    return any(is_steady(level, progress, levels.start) for level in (known.items, known.held))


def _span_wanted(candidate: Candidate, levels: Levels) -> float:
    if candidate.emptied == "trimmed":
        return _PATIENCE_SPAN
    if candidate.emptied == "some":
        return _REMOVED_SPAN
    grown = candidate.bytes_per_minute / 60 * candidate.growth.span
    little = max(_LITTLE_BYTES, _LITTLE_SHARE * levels.resident)
    return _CAREFUL_SPAN if grown < little else _SHORTEST_SPAN


def _with_shares(findings: Sequence[Finding], bytes_per_minute: float) -> list[Finding]:
    """The findings with their shares of all growth, which add up to 1 at most: leaks come first."""
    left, shares = 1.0, []
    for found in ranked(findings):
        share = min(left, found.bytes_per_minute / bytes_per_minute) if bytes_per_minute > 0 else 0.0
        left -= share
        shares.append(replace(found, share=share))
    return shares


def with_room(findings: Sequence[Finding], levels: Levels) -> list[Finding]:
    """The findings, with whether the memory that is left suffices for all buffers that surely go on growing.

    Of a buffer that needs more than that, and whose growth is not sure yet, it is not known.
    """
    needed = [_needed(one) if one.fits is not None else 0.0 for one in findings]
    crowded = sum(more for one, more in zip(findings, needed, strict=True) if one.fits is False) > levels.left
    checked = []
    for one, more in zip(findings, needed, strict=True):
        fits = one.fits
        if fits is False:
            fits = not (crowded and more > 0)
        elif fits and more > levels.left and levels.matters(one.bytes_per_minute):
            fits = None
        checked.append(replace(one, fits=fits))
    return checked


def _needed(finding: Finding) -> float:
    """Bytes that a buffer will still take until it is full."""
    if not (finding.items and finding.bytes and finding.capacity_items):
        return 0.0
    return finding.bytes * (finding.capacity_items / finding.items - 1)


def _is_worth_reporting(finding: Finding, levels: Levels) -> bool:
    if finding.is_leak or finding.fits is False:
        return True
    return levels.matters(finding.bytes_per_minute) and finding.share >= _NOTED_SHARE


def _verdict(
    levels: Levels, findings: Sequence[Finding], seconds: float, walked: tuple[int, int] | None
) -> tuple[Word, str]:
    if any(finding.is_leak for finding in findings):
        return "leak", ""
    if any(finding.fits is False for finding in findings):
        return "will not fit", f"{size_text(levels.left)} of memory is left."
    rate, fast = levels.per_minute, levels.rises_fast_by
    grows = f"Memory grows by {size_text(max(rate, fast))}/min." if levels.matters(max(rate, fast)) else ""
    if seconds < TOO_EARLY_SECONDS:
        left = f"A verdict takes {TOO_EARLY_SECONDS:.0f} s, {math.ceil(TOO_EARLY_SECONDS - seconds)} s more."
        return "too early", _joined(grows, left, _searched(walked))
    remaining = _GOES_ON_SECONDS - levels.growing_seconds
    if walked is not None and remaining > 0:
        waits = f"Growth is judged without it in {math.ceil(remaining / 60)} min."
        return "too early", _joined(grows, _searched(walked), waits)
    buffers = [finding for finding in findings if finding.kind == "buffer"]
    filled = rate_of([finding for finding in buffers if finding.fits])
    rises = fast > 0 and filled < EXPLAINED * fast
    matters = levels.matters(rate) and filled < EXPLAINED * rate
    if not (rises or matters):
        filling = any(not _is_full(finding) for finding in buffers)
        return ("filling", "") if filling else ("healthy", f"Memory use is {size_text(levels.resident)}.")
    if not rises:
        rising = levels.own.rising or levels.workers.rising
        if levels.grown < (_NOISE_BYTES if rising else levels.material):
            return "healthy", f"Memory use is {size_text(levels.resident)}."
        if not rising and levels.slowed_down:
            return "warm-up", ""
    if remaining > 0:
        when = f"Whether it slows down can be told in {math.ceil(remaining / 60)} min."
        return "too early", _joined(grows, when)
    lasts = f"It has gone on for {levels.growing_seconds / 60:.0f} min and does not slow down."
    return "growing", _joined(grows, lasts)


def _searched(walked: tuple[int, int] | None) -> str:
    """How far the first search is; empty once it is complete."""
    if walked is None:
        return ""
    visited, waiting = walked
    if not visited:
        return "The search through the program's objects has not begun."
    return (
        f"The first search through the program's objects is not complete: {visited:,} visited, at "
        f"least {waiting:,} to go."
    )


def _joined(*parts: str) -> str:
    return " ".join(filter(None, parts))


def _is_full(finding: Finding) -> bool:
    return finding.capacity_items is not None and (finding.items or 0) >= finding.capacity_items
