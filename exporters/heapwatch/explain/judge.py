"""Which of the growing containers are leaks, and how much of the process's growth they account for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from heapwatch.explain.findings import Explanation, Finding, FindingKind, Verdict, ranked, size_text
from heapwatch.explain.inventory import Known
from heapwatch.explain.memory import Memory
from heapwatch.explain.series import NO_GROWTH, Growth
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
_PATIENCE_SPAN = 240.0  # for a container that the program cuts to a length that is not known
_REMOVED_SPAN = 45.0  # for one from which the program takes items
_NOTED_SHARE = 0.02
_UNNAMED_BYTES = 16e6
_UNNAMED_SHARE = 0.05
_UNNAMED_SPAN = 450.0
_PAST_BOUND = 1.05
_MOST_FINDINGS = 20
_EXPLAINED = 0.5


# Not at all; single items or everything, which says nothing of how many stay; or down to a length.
Emptying = Literal["never", "some", "trimmed"]


@dataclass(frozen=True)
class Candidate:
    """A growing container with everything known about it.

    Attributes:
        known: the container.
        growth: of its items, or of its bytes where these are read.
        look: what its items are.
        capacity: the bound found for it.
        site: where it grows.
        emptied: how the program also takes items out, see `Emptying`.
        holders: what holds it.
        remedy: what to do.

    """

    known: Known
    growth: Growth
    look: Look = NOTHING_SEEN
    capacity: int | None = None
    site: Site | None = None
    emptied: Emptying = "never"
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
        known, pace = self.known, 60 * self.growth.per_second
        if known.in_bytes:
            return pace * known.multiplicity
        counted = (known.items.last or 0.0) if known.kind == "ring" else known.weighed_items
        return pace * (known.held.last or 0.0) / counted if counted else 0.0

    @property
    def bounded(self) -> bool:
        """Whether it has a bound and keeps to it."""
        return self.capacity is not None and (self.known.items.last or 0.0) <= _PAST_BOUND * self.capacity


@dataclass(frozen=True)
class Levels:
    """The process's memory over time, and how long it is watched: seconds of one clock."""

    memory: Memory
    began: float
    now: float

    @property
    def start(self) -> float:
        """From when on a container's growth counts: what came before is warm-up."""
        return self.began + min(WARM_UP_SECONDS, WARM_UP_SHARE * (self.now - self.began))

    @property
    def settled(self) -> float:
        """From when on the process's growth counts: loading modules is warm-up, too."""
        return max(self.start, self.memory.settled_at)

    @property
    def resident(self) -> float:
        """Resident bytes of now."""
        return self.memory.resident.last or 0.0

    @property
    def own(self) -> Growth:
        """Growth of what the process itself holds; pages of files the system takes back when in need."""
        return (self.memory.private if self.memory.private.last else self.memory.resident).growth(
            self.settled
        )

    @property
    def per_minute(self) -> float:
        """Bytes a minute by which the process, its children and its GPU memory grow."""
        parts = (self.own, self.memory.workers.growth(self.settled), self.memory.gpu.growth(self.settled))
        return 60 * sum(part.per_second for part in parts)

    def matters(self, bytes_per_minute: float) -> bool:
        """Whether growth of this pace is worth a word: it ends the process, or multiplies it, in time."""
        left = max(0.0, self.memory.limit - self.resident)
        hourly = bytes_per_minute * 60
        return bytes_per_minute * _HORIZON_MINUTES >= left or hourly >= _HOURLY_SHARE * self.resident


def explain(
    levels: Levels, candidates: Sequence[Candidate], types: Sequence[Finding] = (), rounds: int = 1
) -> Explanation:
    """Judge what grows.

    Args:
        levels: of the process.
        candidates: growing containers.
        types: growing types; they count for what no container explains.
        rounds: walks through the program's objects so far.

    """
    seconds = levels.now - levels.began
    settled = levels.now - max(levels.began, levels.memory.settled_at)
    own, pace = levels.own, levels.per_minute
    findings: list[Finding] = []
    met: set[int] = set()
    for candidate in sorted(candidates, key=lambda one: (-one.bytes_per_minute, len(one.known.path))):
        findings.append(_finding(candidate, levels, shared=bool(candidate.look.ids & met)))
        met |= candidate.look.ids
    findings += _workers(levels)
    findings = _inferred(findings, candidates, levels)
    for found in types:
        rest = pace - _rate(findings)
        if rest > _EXPLAINED * pace:
            leaks = _goes_on(own) and levels.matters(found.bytes_per_minute)
            findings.append(replace(found, is_leak=leaks))
    rest = pace - _rate(findings)
    if rest > _EXPLAINED * pace and _goes_on(own) and levels.matters(rest) and _is_plain(rest, levels):
        findings.append(_unnamed(rest, levels))
    findings = [replace(found, share=_share(found.bytes_per_minute, pace)) for found in findings]
    worth = [found for found in findings if _is_worth_telling(found, levels)]
    share = min(1.0, _rate([found for found in worth if found.kind != "native"]) / pace) if pace > 0 else 1.0
    verdict, detail = _verdict(levels, own, worth, settled, rounds)
    return Explanation(verdict, seconds, pace, share, ranked(worth)[:_MOST_FINDINGS], detail)


def _finding(candidate: Candidate, levels: Levels, *, shared: bool) -> Finding:
    known, growth, bounded = candidate.known, candidate.growth, candidate.bounded
    kind: FindingKind = "buffer" if bounded else "container"
    long_enough = growth.span >= _span_wanted(candidate, levels)
    leaks = not bounded and growth.rising and long_enough and levels.matters(candidate.bytes_per_minute)
    capacity = candidate.capacity if bounded else None
    return Finding(
        kind=kind,
        path=known.path,
        type=" of ".join(filter(None, (known.type_name, candidate.look.item_type))),
        items=None if known.in_bytes else round((known.items.last or 0.0) * known.multiplicity),
        bytes=None if candidate.bytes is None else round(candidate.bytes),
        items_per_minute=None if known.in_bytes else 60 * growth.per_second * known.multiplicity,
        # What two containers hold together counts once.
        bytes_per_minute=0.0 if shared else candidate.bytes_per_minute,
        share=0.0,
        capacity_items=None if capacity is None else round(capacity * known.multiplicity),
        site=candidate.site,
        holders=candidate.holders,
        remedy=candidate.remedy,
        is_leak=leaks,
    )


def _span_wanted(candidate: Candidate, levels: Levels) -> float:
    if candidate.emptied == "trimmed":
        return _PATIENCE_SPAN
    if candidate.emptied == "some":
        return _REMOVED_SPAN
    grown = candidate.bytes_per_minute / 60 * candidate.growth.span
    little = max(_LITTLE_BYTES, _LITTLE_SHARE * levels.resident)
    return _CAREFUL_SPAN if grown < little else _SHORTEST_SPAN


def _workers(levels: Levels) -> list[Finding]:
    """The child processes as one finding, where they grow or become more."""
    memory = levels.memory
    growth = memory.workers.growth(levels.settled)
    more = memory.processes.growth(levels.settled)
    if growth.per_second <= 0:
        return []
    rate = 60 * growth.per_second
    rising = more if more.rising else NO_GROWTH
    remedy = "end them: `close()` of the environment or pool, `process.join()`" if more.rising else None
    return [
        Finding(
            kind="worker",
            path=None,
            type="child processes" if more.rising else "memory of the child processes",
            items=round(memory.processes.last or 0.0),
            bytes=round(memory.workers.last or 0.0),
            items_per_minute=60 * rising.per_second,
            bytes_per_minute=rate,
            share=0.0,
            remedy=remedy,
            is_leak=_goes_on(growth) and levels.matters(rate),
        )
    ]


def _inferred(findings: list[Finding], candidates: Sequence[Candidate], levels: Levels) -> list[Finding]:
    """Give growth that nothing measured explains to the container whose items cannot be measured."""
    pace = levels.per_minute
    rest = pace - _rate(findings)
    if not (_goes_on(levels.own) and rest > _EXPLAINED * pace and levels.matters(rest)):
        return findings
    by_path = {candidate.known.path: candidate for candidate in candidates}
    opaque = []
    for at, finding in enumerate(findings):
        candidate = by_path.get(str(finding.path))
        if finding.kind != "container" or candidate is None or not candidate.look.opaque:
            continue
        if candidate.growth.rising or candidate.known.kind == "graph":
            opaque.append((candidate.look.graph, finding.items_per_minute or 0.0, at, candidate))
    if not opaque:
        return findings
    *_, at, candidate = max(opaque, key=lambda entry: entry[:2])
    chosen = findings[at]
    grown = rest / 60 * levels.own.span
    findings[at] = replace(
        chosen,
        bytes=round((chosen.bytes or 0) + grown),
        bytes_per_minute=chosen.bytes_per_minute + rest,
        inferred=True,
        is_leak=candidate.known.kind == "graph" or candidate.growth.span >= _SHORTEST_SPAN,
    )
    return findings


def _unnamed(rest: float, levels: Levels) -> Finding:
    """Growth that nothing in Python accounts for, by where the process's pages are."""
    memory = levels.memory
    parts = {
        "allocator": 60 * memory.retained.growth(levels.settled).per_second,
        "gpu": 60 * memory.gpu.growth(levels.settled).per_second,
        "shared": 60 * memory.shared.growth(levels.settled).per_second,
    }
    kind: FindingKind = "native"
    what, remedy = "memory that no Python object accounts for", None
    if parts["allocator"] > _EXPLAINED * rest:
        kind, what = "allocator", "freed memory that the C allocator keeps"
        remedy = "`malloc_trim(0)` now and then (a cleanup does it), MALLOC_ARENA_MAX=2, or jemalloc"
    elif parts["gpu"] > _EXPLAINED * rest:
        kind, what = "gpu", "GPU memory that no Python container accounts for"
    elif parts["shared"] > _EXPLAINED * rest:
        what = "shared memory that no Python object accounts for"
        remedy = "close and unlink shared memory blocks and queues that are done"
    return Finding(
        kind=kind,
        path=None,
        type=what,
        items=None,
        bytes=None,
        items_per_minute=None,
        bytes_per_minute=rest,
        share=0.0,
        remedy=remedy,
        is_leak=True,
    )


def _goes_on(growth: Growth) -> bool:
    return growth.rising and growth.span >= TOO_EARLY_SECONDS


def _is_plain(rest: float, levels: Levels) -> bool:
    """Whether growth without a name is more than allocators and warm-ups do, or has gone on for long."""
    grown = rest / 60 * levels.own.span
    return grown >= max(_UNNAMED_BYTES, _UNNAMED_SHARE * levels.resident) or levels.own.span >= _UNNAMED_SPAN


def _share(rate: float, pace: float) -> float:
    return min(1.0, rate / pace) if pace > 0 else 0.0


def _rate(findings: Sequence[Finding]) -> float:
    return sum(finding.bytes_per_minute for finding in findings)


def _is_worth_telling(finding: Finding, levels: Levels) -> bool:
    if finding.is_leak:
        return True
    if finding.kind == "buffer" and not _fits(finding, levels):
        return True
    return levels.matters(finding.bytes_per_minute) and finding.share >= _NOTED_SHARE


def _fits(finding: Finding, levels: Levels) -> bool:
    """Whether there is room for a buffer when it is full."""
    if not (finding.items and finding.bytes and finding.capacity_items):
        return True
    full = finding.bytes / finding.items * finding.capacity_items
    return full <= levels.memory.limit - levels.resident + finding.bytes


def _verdict(
    levels: Levels, own: Growth, findings: Sequence[Finding], seconds: float, rounds: int
) -> tuple[Verdict, str]:
    buffers = [finding for finding in findings if finding.kind == "buffer"]
    crowded = next((finding for finding in buffers if not _fits(finding, levels)), None)
    left = levels.memory.limit - levels.resident
    room = f"{size_text(left)} are left." if crowded else ""
    if any(finding.is_leak for finding in findings):
        return "leak", room
    if seconds < TOO_EARLY_SECONDS or not rounds:
        return "too early", "Ask again in a minute."
    pace = levels.per_minute
    if buffers and (crowded or not levels.matters(pace) or _rate(buffers) >= _EXPLAINED * pace):
        return "filling", room
    if not levels.matters(pace):
        return "healthy", f"Memory stands at {size_text(levels.resident)}."
    if own.rising:
        return "too early", "Memory rises steadily, and has not done so for long enough to call it a leak."
    return "warm-up", ""
