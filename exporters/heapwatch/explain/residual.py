"""Findings for growth that no measured container explains: child processes, types, kinds of memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from heapwatch.analysis.leak import MATERIAL_BYTES
from heapwatch.explain.evidence import Candidate, Levels
from heapwatch.explain.findings import Finding, FindingKind
from heapwatch.explain.level_history import OWN, RETAINED
from heapwatch.explain.schedule import STALL_VARIABLE
from heapwatch.explain.series import NO_GROWTH, FloorGrowth

EXPLAINED = 0.5  # unexplained growth below this share of all growth is not investigated
_MEASURED_SPAN = 60.0  # seconds of growth before the unexplained part is attributed
_COUNTED_SPAN = 120.0
_STEADY = 0.8
_SAME_RATE = 0.8
_IMPOSSIBLE = 2.0  # growth of a type, as a multiple of all growth, that cannot be its own


def workers(levels: Levels) -> list[Finding]:
    """One finding for all child processes, if their memory or their number grows."""
    memory = levels.memory
    growth = memory.workers.growth(levels.settled)
    more = memory.processes.growth(levels.settled)
    if growth.per_second <= 0:
        return []
    rate = 60 * growth.per_second
    rising = more if more.rising else NO_GROWTH
    if more.rising:
        remedy = "end them: `close()` of the environment or pool, `process.join()`"
    else:
        remedy = "`heapwatch explain PID` of one of them names what grows there"
    # A growing number of processes is judged as a number of items, memory of the same processes as a level.
    leaks = more.span >= _COUNTED_SPAN if more.rising else "workers" in levels.leaks
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
            is_leak=leaks and growth.rising and levels.matters(rate),
        )
    ]


def inferred(findings: list[Finding], candidates: Sequence[Candidate], levels: Levels) -> list[Finding]:
    """Attribute growth that no measurement explains to a growing container whose items cannot be measured."""
    residual = _residual(findings, levels)
    if not (residual and continues(levels.own)):
        return findings
    by_path = {candidate.known.path: candidate for candidate in candidates}
    opaque = []
    for at, finding in enumerate(findings):
        candidate = by_path.get(str(finding.path))
        if finding.kind != "container" or candidate is None or not candidate.traits.opaque:
            continue
        if candidate.rising:
            opaque.append((candidate.traits.graph, finding.items_per_minute or 0.0, at, candidate))
    if not opaque:
        return findings
    # Several names may lead to one graph and grow at about the same rate. Prefer one whose line is known, and
    # any name to `_`.
    fastest = max(opaque, key=lambda entry: entry[:2])
    same = (one for one in opaque if one[0] == fastest[0] and one[1] >= _SAME_RATE * fastest[1])
    *_, at, candidate = max(
        same, key=lambda one: (one[3].site is not None, _is_name(one[3].known.path), one[1])
    )
    chosen = findings[at]
    grown = residual / 60 * levels.own.span
    # An autograd graph is known to hold much memory. For other objects, container and process must both grow
    # steadily.
    spans = (candidate.growth.span, levels.own.span)
    steady = min(spans) >= _COUNTED_SPAN and levels.own.lasting >= _STEADY and candidate.rising
    certain = grown >= MATERIAL_BYTES and (candidate.traits.graph or steady)
    findings[at] = replace(
        chosen,
        bytes=round((chosen.bytes or 0) + grown),
        bytes_per_minute=chosen.bytes_per_minute + residual,
        inferred=True,
        is_leak=chosen.is_leak or certain or OWN in levels.leaks,
    )
    return findings


def _is_name(path: str) -> bool:
    return path.rpartition(".")[2].strip("_") != ""


def plausible(found: Finding, levels: Levels) -> Finding:
    """Leave out the size of a type whose instances share what they reach; all growth at most is theirs."""
    most = levels.per_minute
    if not 0 < _IMPOSSIBLE * most < found.bytes_per_minute:
        return found
    return replace(found, bytes=None, bytes_per_minute=most)


def with_types(findings: list[Finding], types: Sequence[Finding], levels: Levels) -> list[Finding]:
    """Add growing types while a part of the growth is unexplained."""
    for found in types:
        residual = _residual(findings, levels)
        if residual:
            if found.inferred:
                found = replace(found, bytes_per_minute=min(residual, found.bytes_per_minute))
            grown = found.bytes_per_minute / 60 * levels.own.span
            leaks = (
                continues(levels.own) and grown >= MATERIAL_BYTES and levels.matters(found.bytes_per_minute)
            )
            findings = [*findings, replace(found, is_leak=leaks)]
    return findings


def unnamed(
    findings: Sequence[Finding],
    levels: Levels,
    refused_seconds: float | None = None,
    counted_seconds: float = 0.0,
) -> list[Finding]:
    """A finding for growth that no Python object explains, named by the sort of memory that grows.

    Until objects have been counted by type for two minutes, only containers are known not to be the cause.
    Where objects were not counted by type, as that would have stopped the program for `refused_seconds`, it
    says how to allow it.
    """
    residual, memory = _residual(findings, levels), levels.memory
    if not (residual and continues(levels.own)):
        return []
    kind: FindingKind = "native"
    counted = refused_seconds is None and counted_seconds >= _COUNTED_SPAN
    searched = "Python object" if counted else "container"
    what, remedy, level = f"memory that no {searched} accounts for", None, OWN
    kept = _rate(memory.retained.growth(levels.settled))
    # Where `malloc_trim` has returned freed memory, resident memory grows by less than `retained`.
    if EXPLAINED * residual < kept <= residual / EXPLAINED:
        kind, what, level = "allocator", "freed memory that the C allocator keeps", RETAINED
        remedy = "`malloc_trim(0)` now and then (a cleanup does it), MALLOC_ARENA_MAX=2, or jemalloc"
    elif _rate(memory.gpu.growth(levels.settled)) > EXPLAINED * residual:
        kind, what, level = "gpu", "GPU memory that no Python container accounts for", "gpu"
    elif _rate(memory.shared.growth(levels.settled)) > EXPLAINED * residual:
        what, level = "shared memory that no Python object accounts for", "shared"
        remedy = "close and unlink shared memory blocks and queues that are done"
    elif refused_seconds is not None:
        # Twice that of a count: a list of the instances, and of what refers to them, takes longer.
        allowed = 50 * math.ceil(2 * 1000 * refused_seconds / 50)
        remedy = (
            f"let objects be counted by type, too: start it with {STALL_VARIABLE}={allowed}, since a count "
            f"stops the program for about {1000 * refused_seconds:.0f} ms"
        )
    return [
        Finding(
            kind=kind,
            path=None,
            type=what,
            items=None,
            bytes=None,
            items_per_minute=None,
            bytes_per_minute=residual,
            share=0.0,
            remedy=remedy,
            is_leak=level in levels.leaks,
        )
    ]


def continues(growth: FloorGrowth) -> bool:
    """Whether the process has grown for long enough."""
    return growth.rising and growth.span >= _MEASURED_SPAN


def rate_of(findings: Sequence[Finding]) -> float:
    """Growth of all findings together, in bytes a minute."""
    return sum(finding.bytes_per_minute for finding in findings)


def _residual(findings: Sequence[Finding], levels: Levels) -> float:
    """Unexplained growth in bytes a minute; 0 if it is not material."""
    rate = levels.per_minute
    residual = rate - rate_of(findings)
    return residual if residual > EXPLAINED * rate and levels.matters(residual) else 0.0


def _rate(growth: FloorGrowth) -> float:
    return 60 * growth.per_second
