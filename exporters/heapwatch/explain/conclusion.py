"""The verdict on a process, by its levels and by the findings about it, and the time that is left."""

from __future__ import annotations

from collections.abc import Sequence

from heapwatch.explain.candidate import Candidate, span_wanted
from heapwatch.explain.findings import Finding, growth_text, rate_of
from heapwatch.explain.thresholds import (
    COUNTED_SPAN,
    EXPLAINED,
    FAST_SECONDS,
    LASTING_SECONDS,
    MEASURED_SPAN,
    NOISE_BYTES,
    TOO_EARLY_SECONDS,
)
from heapwatch.judge.memory import MemoryGrowth, TimeLeft
from heapwatch.judge.verdict import SERIOUS, Word
from heapwatch.text.numbers import duration, size, wait

_GROW_ON = ("too early", "growing", "will not fit", "leak")
_NOT_WALKED = "The first search through the program's objects is not complete."


def verdict_on(
    levels: MemoryGrowth, findings: Sequence[Finding], seconds: float, known_in: float | None
) -> tuple[Word, str]:
    """The verdict, and what it waits for or is about.

    Args:
        levels: memory of the process over time.
        findings: what grows.
        seconds: since the end of the start-up.
        known_in: see `seconds_until_known`; None while the first search is not complete.

    """
    if any(finding.is_leak for finding in findings):
        return "leak", ""
    if any(finding.fits is False for finding in findings):
        which = "GPU memory" if levels.is_on_gpu else "memory"
        return "will not fit", f"{size(levels.left)} of {which} is left."
    rate, fast = levels.per_minute, levels.rises_fast_by
    grows = ""
    if levels.matters(max(rate, fast)):
        grows = growth_text(max(rate, fast), max(rate, fast) * levels.gpu_per_minute / rate if rate else 0.0)
    if seconds < TOO_EARLY_SECONDS:
        left = f"A verdict takes {wait(TOO_EARLY_SECONDS)}, {wait(TOO_EARLY_SECONDS - seconds)} more."
        return "too early", _joined(grows, left, "" if known_in is not None else _NOT_WALKED)
    lasts = levels.growing_seconds >= LASTING_SECONDS
    if known_in is None and not lasts:
        return "too early", _joined(grows, _NOT_WALKED)
    buffers = [finding for finding in findings if finding.kind == "buffer"]
    filled = rate_of([finding for finding in buffers if finding.fits])
    rises = fast > 0 and filled < EXPLAINED * fast
    matters = levels.matters(rate) and filled < EXPLAINED * rate
    if not (rises or matters):
        if not levels.are_measured:
            return "too early", "Memory has too few readings since the start-up."
        filling = any(not _is_full(finding) for finding in buffers)
        return ("filling", "") if filling else ("healthy", f"Memory use is {size(levels.resident)}.")
    if not rises and levels.are_measured:
        rising = any(growth.rising for _, growth in levels.parts)
        if sum(growth.total for _, growth in levels.parts) < (NOISE_BYTES if rising else levels.material):
            return "healthy", f"Memory use is {size(levels.resident)}."
        if not rising and levels.slowed_down:
            return "warm-up", ""
    if not lasts:
        return "too early", _joined(grows, f"Whether it lasts is known in {wait(max(known_in or 0.0, 1.0))}.")
    gone_on = f"It has gone on for {duration(levels.growing_seconds)} and does not slow down."
    return "growing", _joined(grows, gone_on)


def seconds_until_known(
    levels: MemoryGrowth, candidates: Sequence[Candidate], counted_seconds: float
) -> float:
    """Seconds until it is known whether growth lasts: by a container, by a type, or by memory alone."""
    waits = [
        span_wanted(one, levels) - one.growth.span
        for one in candidates
        if one.rising and not one.bounded and levels.matters(one.bytes_per_minute)
    ]
    grown, span = levels.growing_seconds, levels.faster[1].span
    # The growth that nothing measures is put down to items that cannot be measured.
    waits += [
        (MEASURED_SPAN if one.traits.graph else COUNTED_SPAN) - span
        for one in candidates
        if one.rising and not one.bounded and one.traits.opaque
    ]
    if 0 < counted_seconds < COUNTED_SPAN:
        waits.append(COUNTED_SPAN - counted_seconds)
    fast = levels.is_fast and grown < FAST_SECONDS
    waits.append((FAST_SECONDS if fast else LASTING_SECONDS) - grown)
    return min(left for left in waits if left > 0 or left == waits[-1])


def _joined(*parts: str) -> str:
    return " ".join(filter(None, parts))


def _is_full(finding: Finding) -> bool:
    return finding.capacity_items is not None and (finding.items or 0) >= finding.capacity_items


def time_left(levels: MemoryGrowth, rate: float, verdict: Word) -> tuple[TimeLeft | None, bool]:
    """The time until the memory is used up, with that at the rate which the message says."""
    if verdict not in _GROW_ON:
        return None, False
    left, on_gpu = levels.time_left
    said = rate if verdict in SERIOUS else max(rate, levels.rises_fast_by)
    if left is None or levels.gpu_per_minute > 0:
        return left, on_gpu
    at = 60 * levels.ram_left / said
    return TimeLeft(min(left.least, at), max(left.most, at)), on_gpu
