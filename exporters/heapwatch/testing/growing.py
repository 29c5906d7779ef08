"""Something that grows with every round, as a failed test reports it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from heapwatch.analysis.verdict import Word
from heapwatch.explain.census import LongContainer
from heapwatch.explain.evidence import Candidate
from heapwatch.explain.findings import OUTSIDE, size_text
from heapwatch.explain.remedies import remedy_for_type
from heapwatch.explain.sites import Site
from heapwatch.measure.process.memory import memory_limit


@dataclass(frozen=True)
class Growing:
    """Something that grows with every round.

    Attributes:
        name: its path, or in words what it is.
        about: what it holds, in words.
        bytes: growth in a round; None if it cannot be measured.
        items: growth in a round; None if items are not counted.
        site: the line where it grows.
        holders: what holds it, the nearest first.
        remedy: what to do.
        verdict: `leak`, or `will not fit` for a buffer that needs more memory than there is.

    """

    name: str
    about: str
    bytes: float | None
    items: float | None = None
    site: Site | None = None
    holders: tuple[str, ...] = ()
    remedy: str | None = None
    verdict: Word = "leak"

    def __str__(self) -> str:
        facts = [] if self.bytes is None else [f"+{size_text(self.bytes)}"]
        facts += [] if self.items is None else [f"{self.items:+,.3g} items"]
        text = f"{self.name} ({self.about}): {' and '.join(facts) or 'grows'} a round"
        if self.site is not None:
            text += f", filled at {self.site.file}:{self.site.line} in {self.site.function or '<module>'}"
        elif self.holders:
            text += f", held by {' < '.join(self.holders)}"
        return f"{text}. Suggested: {self.remedy}." if self.remedy else f"{text}."


def growing_container(candidate: Candidate) -> Growing:
    """A container that grows, with its growth per round: the candidate's seconds are rounds."""
    known = candidate.known
    about = " of ".join(filter(None, (known.type_name, candidate.traits.item_type)))
    size = candidate.bytes_per_minute / 60
    return Growing(
        known.path,
        about,
        size if size > 0 else None,
        None if known.in_bytes else candidate.growth.per_second * known.multiplicity,
        candidate.site,
        candidate.holders,
        candidate.remedy,
    )


def unreached_container(known: LongContainer) -> Growing:
    """A container without a path; its holders are named instead."""
    rate = known.items_per_minute / 60
    size = None if known.bytes is None else rate * known.bytes / known.items
    name = " < ".join(known.holders) or OUTSIDE
    return Growing(name, known.type, size, rate, known.site, remedy=remedy_for_type(known.holders))


def too_large(candidate: Candidate) -> list[Growing]:
    """A buffer that needs more memory than there is when it is full."""
    limit = memory_limit()
    full = _when_full(candidate)
    if full is None or not 0 < limit < full:
        return []
    remedy = f"a smaller bound: full it needs {size_text(full)} of {size_text(limit)} of memory"
    return [replace(growing_container(candidate), remedy=remedy, verdict="will not fit")]


def _when_full(candidate: Candidate) -> float | None:
    held, items = candidate.bytes, candidate.known.items.last
    return held / items * candidate.capacity if held and items and candidate.capacity else None
