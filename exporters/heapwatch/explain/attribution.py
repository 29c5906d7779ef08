"""Decides which growing containers are leaks, and what the growth is that no container explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from heapwatch.explain.candidate import Candidate, span_wanted
from heapwatch.explain.conclusion import seconds_until_known, time_left, verdict_on
from heapwatch.explain.findings import Explanation, Finding, FindingKind, ranked, rate_of, size_when_full
from heapwatch.explain.places import KnownContainer
from heapwatch.explain.thresholds import (
    COUNTED_SPAN,
    EXPLAINED,
    IMPOSSIBLE,
    MEASURED_SPAN,
    MOST_FINDINGS,
    NOTED_SHARE,
    SAME_RATE,
    SHARED,
    STEADY,
)
from heapwatch.judge.component import MATERIAL_BYTES
from heapwatch.judge.level import NO_GROWTH, FloorGrowth, is_steady
from heapwatch.judge.memory import MemoryGrowth


def explain(
    levels: MemoryGrowth,
    candidates: Sequence[Candidate],
    types: Sequence[Finding] = (),
    counted_seconds: float = 0.0,
    *,
    walked: bool = True,
    searched: bool = True,
) -> Explanation:
    """Say what grows, and the verdict on it.

    Args:
        levels: memory of the process over time.
        candidates: growing containers.
        types: growing types, for the growth that no container explains.
        counted_seconds: for how long objects have been counted by type.
        walked: whether the first search for growing containers is complete.
        searched: whether containers are searched for at all; otherwise the levels are judged alone.

    """
    seconds = levels.now - levels.began
    memory = levels.memory
    since_startup = levels.now - max(levels.began, memory.startup_end, memory.cleaned_at)
    findings: list[Finding] = []
    seen: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda one: (-one.bytes_per_minute, len(one.known.path))):
        findings.append(_finding(candidate, levels, seen))
        seen.append(candidate)
    findings += _workers(levels)
    findings = _folded(_inferred(findings, candidates, levels))
    findings = with_types(findings, types, levels)
    findings += _unnamed(findings, levels, counted_seconds, searched=searched)
    findings, rate = _agreed(findings, levels)
    findings = _with_shares(findings, rate)
    findings = _with_fits(findings, levels)
    reported = [finding for finding in findings if _is_reported(finding, levels)]
    named = rate_of([finding for finding in reported if finding.kind != "native"])
    share = min(1.0, named / rate) if rate > 0 else 1.0
    known_in = seconds_until_known(levels, candidates, counted_seconds) if walked or not searched else None
    verdict, detail = verdict_on(levels, reported, since_startup, known_in)
    if verdict == "healthy":  # nothing grows that matters
        reported = [finding for finding in reported if finding.kind == "buffer"]
    left, ends_on_gpu = time_left(levels, rate, verdict)
    return Explanation(
        verdict,
        seconds,
        rate,
        share,
        ranked(reported)[:MOST_FINDINGS],
        detail,
        left,
        gpu_growth_bytes_per_minute=levels.gpu_per_minute,
        ends_on_gpu=ends_on_gpu,
    )


def is_unexplained(explanation: Explanation, levels: MemoryGrowth) -> bool:
    """Whether material growth goes on that no finding names, so that a search is worth its cost."""
    measured = [one for one in explanation.findings if one.kind != "native" and not one.inferred]
    rate = explanation.growth_bytes_per_minute
    residual = rate - rate_of(measured)
    if residual <= EXPLAINED * rate or not _continues(levels):
        return False
    return levels.matters(residual) and residual / 60 * levels.faster[1].span >= MATERIAL_BYTES


def _finding(candidate: Candidate, levels: MemoryGrowth, seen: Sequence[Candidate]) -> Finding:
    container, growth, bounded = candidate.known, candidate.growth, candidate.bounded
    ids = candidate.traits.ids
    owner = next((one.known.path for one in seen if ids & one.traits.ids), None)
    kind: FindingKind = "buffer" if bounded else "container"
    long_enough = growth.span >= span_wanted(candidate, levels)
    rate = candidate.bytes_per_minute
    certain = candidate.rising and long_enough and rate / 60 * growth.span >= MATERIAL_BYTES
    continues = (certain or candidate.leaks_on) and levels.matters(rate)
    capacity = candidate.capacity if bounded else None
    return Finding(
        kind=kind,
        path=container.path,
        type=" of ".join(filter(None, (container.type_name, candidate.traits.item_type))),
        items=round((container.items.last or 0.0) * container.multiplicity) if container.counted else None,
        bytes=None if candidate.bytes is None else round(candidate.bytes),
        items_per_minute=60 * growth.per_second * container.multiplicity if container.counted else None,
        bytes_per_minute=0.0 if owner else rate,  # see `_folded`
        capacity_items=None if capacity is None else round(capacity * container.multiplicity),
        site=candidate.site,
        holders=candidate.holders,
        remedy=candidate.remedy,
        is_leak=continues and not bounded,
        steady=_is_steady(container, levels),
        fits=not continues if bounded else None,  # a sure growth is compared with the memory by `_with_fits`
        shared_with=owner,
    )


def _folded(findings: Sequence[Finding]) -> list[Finding]:
    """One finding for containers that keep the same items: that of a leak, which names another of them."""
    folded: dict[str | None, Finding] = {}
    first_of: dict[str | None, str | None] = {}
    for at, finding in enumerate(findings):
        key = finding.path or str(at)
        first_of[key] = owner = first_of.get(finding.shared_with, key)
        first = folded.setdefault(owner, finding)
        if first is not finding:
            other, main = sorted((finding, first), key=lambda one: (one.is_leak, one.inferred))
            rate = first.bytes_per_minute + finding.bytes_per_minute
            folded[owner] = replace(main, bytes_per_minute=rate, shared_with=other.path)
    return list(folded.values())


def _is_steady(container: KnownContainer, levels: MemoryGrowth) -> bool:
    """Whether its items or its bytes keep their rate: episodes that get longer become fewer."""
    progress, start = levels.memory.progress, levels.start
    return any(is_steady(level, progress, start) for level in (container.items, container.held))


def _agreed(findings: list[Finding], levels: MemoryGrowth) -> tuple[list[Finding], float]:
    """The findings, and the growth of memory in bytes a minute, of which leaks are all at most.

    Noise may hide growth of memory that leaks have. What it cannot hide is counted more than once: items
    share what they hold.
    """
    rate, leaking = levels.per_minute, rate_of([one for one in findings if one.is_leak])
    if leaking <= rate:
        return findings, rate
    if not _continues(levels) or leaking <= levels.most_per_minute:
        return findings, leaking
    part = rate / leaking
    counted, facts = (part, ", whose items share memory") if part <= SHARED else (1.0, "")
    for at, one in enumerate(findings):
        if one.is_leak:
            held, each = one.bytes and round(counted * one.bytes), part * one.bytes_per_minute
            findings[at] = replace(one, type=one.type + facts, bytes=held, bytes_per_minute=each)
    return findings, rate


def _with_shares(findings: Sequence[Finding], bytes_per_minute: float) -> list[Finding]:
    """The findings with their shares of all growth, which add up to 1 at most: leaks come first."""
    left, shares = 1.0, []
    for finding in ranked(findings):
        share = min(left, finding.bytes_per_minute / bytes_per_minute) if bytes_per_minute > 0 else 0.0
        left -= share
        shares.append(replace(finding, share=share))
    return shares


def _with_fits(findings: Sequence[Finding], levels: MemoryGrowth) -> list[Finding]:
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
    return size_when_full(finding) - finding.bytes


def _is_reported(finding: Finding, levels: MemoryGrowth) -> bool:
    if finding.is_leak or finding.fits is False:
        return True
    return levels.matters(finding.bytes_per_minute) and finding.share >= NOTED_SHARE


def _workers(levels: MemoryGrowth) -> list[Finding]:
    """One finding for all child processes, if their memory or their number grows."""
    memory = levels.memory
    more = memory.processes.growth(levels.startup_end)
    growth = levels.workers
    if growth.per_second <= 0:
        return []
    rate = 60 * growth.per_second
    rising = more if more.rising else NO_GROWTH
    if more.rising:
        remedy = "end them: `close()` of the environment or pool, `process.join()`"
    else:
        remedy = "`heapwatch explain PID` of one of them names what grows there"
    # A growing number of processes is judged as a number of items, memory of the same processes as a level.
    leaks = more.span >= COUNTED_SPAN if more.rising else levels.leaks_in("memory", "worker")
    return [
        Finding(
            kind="worker",
            path=None,
            type="child processes" if more.rising else "memory of the child processes",
            items=round(memory.processes.last or 0.0),
            bytes=round(memory.workers.last or 0.0),
            items_per_minute=60 * rising.per_second,
            bytes_per_minute=rate,
            remedy=remedy,
            is_leak=leaks and growth.rising and levels.matters(rate),
        )
    ]


def _inferred(
    findings: list[Finding], candidates: Sequence[Candidate], levels: MemoryGrowth
) -> list[Finding]:
    """Attribute growth that no measurement explains to a growing container whose items cannot be measured."""
    residual = _residual(findings, levels)
    if not (residual and _continues(levels)):
        return findings
    by_path = {candidate.known.path: candidate for candidate in candidates}
    opaque = []
    for at, finding in enumerate(findings):
        candidate = by_path.get(str(finding.path))
        if finding.kind != "container" or candidate is None or not candidate.traits.opaque:
            continue
        if candidate.rising or candidate.leaks_on:
            opaque.append((candidate.traits.graph, finding.items_per_minute or 0.0, at, candidate))
    if not opaque:
        return findings
    # Several names may lead to one graph and grow at about the same rate. Prefer one whose line is known, any
    # name to `_`, and then always the same.
    fastest = max(opaque, key=lambda entry: entry[:2])
    same = [one for one in opaque if one[0] == fastest[0] and one[1] >= SAME_RATE * fastest[1]]
    *_, at, candidate = min(
        same, key=lambda one: (one[3].site is None, not _is_name(one[3].known.path), one[3].known.path)
    )
    owner = _owner(candidate.known.path)
    siblings = [one[2] for one in same if owner and _owner(one[3].known.path) == owner]
    findings[at] = _together(owner, findings[at], [findings[one] for one in siblings])
    chosen = findings[at]
    grown = residual / 60 * levels.faster[1].span
    # An autograd graph is known to hold much memory. For other objects, container and process must both grow
    # steadily.
    spans = (candidate.growth.span, levels.faster[1].span)
    steady = min(spans) >= COUNTED_SPAN and levels.faster[1].lasting >= STEADY and candidate.rising
    certain = candidate.leaks_on or (grown >= MATERIAL_BYTES and (candidate.traits.graph or steady))
    findings[at] = replace(
        chosen,
        bytes=round((chosen.bytes or 0) + grown),
        bytes_per_minute=chosen.bytes_per_minute + residual,
        inferred=True,
        is_leak=chosen.is_leak or certain or levels.faster_leaks,
    )
    return [one for index, one in enumerate(findings) if index == at or index not in siblings]


def _owner(path: str) -> str:
    """The path of the dict, list or object that a path is in; empty for a variable."""
    owner = path[: path.rindex("[")] if path.endswith("]") else path.rpartition(".")[0]
    return "" if owner.endswith(")") else owner


def _together(owner: str, first: Finding, siblings: Sequence[Finding]) -> Finding:
    """One finding for several containers of one owner that grow alike."""
    if len(siblings) < 2:
        return first
    return replace(
        first,
        path=f"{owner}[*]" if str(first.path).endswith("]") else f"{owner}.*",
        items=sum(one.items or 0 for one in siblings),
        bytes=sum(one.bytes or 0 for one in siblings),
        items_per_minute=sum(one.items_per_minute or 0.0 for one in siblings),
        bytes_per_minute=sum(one.bytes_per_minute for one in siblings),
    )


def _is_name(path: str) -> bool:
    return path.rpartition(".")[2].strip("_") != ""


def plausible(finding: Finding, levels: MemoryGrowth) -> Finding:
    """Leave out the size of a type whose instances share what they reach; all growth at most is theirs."""
    most = levels.per_minute
    if not 0 < IMPOSSIBLE * most < finding.bytes_per_minute:
        return finding
    return replace(finding, bytes=None, bytes_per_minute=most)


def with_types(findings: list[Finding], types: Sequence[Finding], levels: MemoryGrowth) -> list[Finding]:
    """Add growing types while a part of the growth is unexplained."""
    for finding in types:
        residual = _residual(findings, levels)
        if residual:
            if finding.inferred:
                finding = replace(finding, bytes_per_minute=min(residual, finding.bytes_per_minute))
            grown = finding.bytes_per_minute / 60 * levels.faster[1].span
            leaks = (
                _continues(levels) and grown >= MATERIAL_BYTES and levels.matters(finding.bytes_per_minute)
            )
            findings = [*findings, replace(finding, is_leak=leaks)]
    return findings


def _unnamed(
    findings: Sequence[Finding], levels: MemoryGrowth, counted_seconds: float, *, searched: bool
) -> list[Finding]:
    """A finding for growth that no Python object explains, named by the sort of memory that grows.

    Until objects have been counted by type for two minutes, only containers are known not to be the cause.
    """
    residual, memory = _residual(findings, levels), levels.memory
    if not (residual and _continues(levels)):
        return []
    kind: FindingKind = "native"
    what, remedy = "memory", None
    kept = _rate(memory.retained.growth(levels.startup_end))
    # `retained` is an upper bound: freed memory that was returned may be among it.
    if EXPLAINED * residual < kept <= residual / EXPLAINED:
        kind, what = "allocator", "freed memory that the C allocator keeps"
        remedy = "`malloc_trim(0)` now and then (a cleanup does it), MALLOC_ARENA_MAX=2, or jemalloc"
    elif _rate(memory.gpu.growth(levels.startup_end)) > EXPLAINED * residual:
        kind, what = "gpu", "GPU memory"
    elif _rate(memory.shared.growth(levels.startup_end)) > EXPLAINED * residual:
        what, remedy = "shared memory", "close and unlink shared memory blocks and queues that are done"
    if searched and kind != "allocator":
        what += f" that no {'Python object' if counted_seconds >= COUNTED_SPAN else 'container'} accounts for"
    return [
        Finding(
            kind=kind,
            path=None,
            type=what,
            bytes_per_minute=residual,
            remedy=remedy,
            is_leak=levels.leaks_in("gpu_memory") if kind == "gpu" else levels.leaks_in("memory", "trainer"),
        )
    ]


def _continues(levels: MemoryGrowth) -> bool:
    """Whether the process, or its GPU memory, has grown for long enough."""
    _, growth = levels.faster
    return growth.rising and growth.span >= MEASURED_SPAN


def _residual(findings: Sequence[Finding], levels: MemoryGrowth) -> float:
    """Unexplained growth in bytes a minute; 0 if it is not material."""
    rate = levels.per_minute
    residual = rate - rate_of(findings)
    return residual if residual > EXPLAINED * rate and levels.matters(residual) else 0.0


def _rate(growth: FloorGrowth) -> float:
    return 60 * growth.per_second
