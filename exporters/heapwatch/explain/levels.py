"""Findings that no search for growing containers makes: leaking levels, rising counts, too large buffers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from heapwatch.explain.findings import Explanation, Finding, ranked
from heapwatch.judge.component import BYTES, MEMORY, WORKERS, Component
from heapwatch.judge.measured import FAST_MINUTES
from heapwatch.judge.memory import MemoryGrowth
from heapwatch.judge.trainer import Leak, Rise, TrainerJudge
from heapwatch.judge.verdict import Word
from heapwatch.text.numbers import duration, size, wait

DETACH = "`tensor.detach().cpu()` before storing, or `.item()` for a number: each keeps its autograd graph"
_COUNTED_MINUTES = 1.5  # three readings, before which nothing comforting is said of counts
_COMFORT: tuple[Word, ...] = ("healthy", "warm-up", "filling")
# The findings of the explainer that speak of the same growth.
_SAME_KINDS = {
    MEMORY: ("container", "type", "buffer", "native", "allocator"),
    WORKERS: ("worker",),
    Component("objects", "worker_processes"): ("worker",),
}


@dataclass(frozen=True)
class Declared:
    """What the trainer declared of its buffers.

    Attributes:
        paths: where each buffer is, such as `agent.memory`, by name.
        to_fill: bytes that each will still take until it is full.

    """

    paths: Mapping[str, str] = field(default_factory=dict)
    to_fill: Mapping[str, float] = field(default_factory=dict)


def with_judged_levels(
    explanation: Explanation, judge: TrainerJudge, levels: MemoryGrowth, declared: Declared
) -> Explanation:
    """The explanation with what the judge of all levels found. The verdict speaks of everything watched."""
    for leak in judge.leaks:
        explanation = _with_leak(explanation, leak, declared.paths)
    if explanation.verdict != "leak":
        explanation = _with_unfit(explanation, levels, declared.to_fill)
    if explanation.verdict in _COMFORT:
        explanation = _with_rising(explanation, judge)
    return replace(explanation, leaks=_leaks(explanation, judge.leaks, levels))


def with_past_bound(explanation: Explanation, leaks: Iterable[Leak]) -> Explanation:
    """The explanation with containers that are past their bound now: alerts wait, the verdict does not."""
    for leak in leaks:
        explanation = _with_leak(explanation, leak, {})
    return explanation


def _with_leak(explanation: Explanation, leak: Leak, paths: Mapping[str, str]) -> Explanation:
    findings = list(explanation.findings)
    if leak.reason == "graphs":
        path = paths.get(leak.component.name, leak.component.name)
        same = next((one for one in findings if _is_of(one.path, path)), None)
        if same is None:
            findings.append(_finding(leak, path))
        else:
            findings[findings.index(same)] = replace(same, remedy=DETACH, is_leak=True)
    elif not _is_named(leak.component, explanation):
        findings.append(_finding(leak))
    return replace(explanation, verdict="leak", detail="", findings=ranked(findings))


def _finding(leak: Leak, path: str | None = None) -> Finding:
    component, in_bytes = leak.component, leak.component.resource in BYTES
    amount = round(leak.amount)
    if leak.reason == "graphs":
        what = f"{leak.amount:,.0f} tensors with their autograd graphs"
        bound = None if leak.bound is None else round(leak.bound)
        return Finding("buffer", path, what, capacity_items=bound, remedy=DETACH, is_leak=True)
    return Finding(
        kind="level",
        path=None,
        type=str(component),
        items=None if in_bytes else amount,
        bytes=amount if in_bytes else None,
        items_per_minute=None if in_bytes else leak.per_minute,
        bytes_per_minute=leak.per_minute if in_bytes else 0.0,
        capacity_items=None if leak.bound is None else round(leak.bound),
        is_leak=True,
    )


def _with_unfit(explanation: Explanation, levels: MemoryGrowth, to_fill: Mapping[str, float]) -> Explanation:
    """The verdict that declared buffers do not fit, as soon as that is known."""
    needed = sum(to_fill.values())
    if not needed or needed <= levels.ram_left:
        return explanation
    largest = max(to_fill, key=to_fill.__getitem__)
    findings = [one for one in explanation.findings if not _is_of(one.path, largest)]
    unfit = Finding("buffer", largest, f"a buffer with {size(to_fill[largest])} to fill", fits=False)
    return replace(
        explanation,
        verdict="will not fit",
        detail=f"{size(levels.ram_left)} of memory is left.",
        findings=(unfit, *findings),
        time_left=explanation.time_left or levels.time_left[0],
    )


def _with_rising(explanation: Explanation, judge: TrainerJudge) -> Explanation:
    """The explanation without comfort while counts rise, or were read too rarely to say so."""
    rising = judge.rising()
    if rising:
        findings = (*map(_rising_finding, rising), *explanation.findings)
        return replace(explanation, verdict="too early", detail=_waits(rising[0]), findings=findings)
    if judge.counts and judge.watched_minutes < _COUNTED_MINUTES:
        return replace(explanation, verdict="too early", detail="Counts have been read too few times.")
    return explanation


def _rising_finding(rise: Rise) -> Finding:
    return replace(_finding(Leak(rise.component, "growth", rise.per_minute, rise.amount)), is_leak=False)


def _waits(rise: Rise) -> str:
    if rise.minutes < FAST_MINUTES:
        return f"Whether it continues is known in {wait(60 * (FAST_MINUTES - rise.minutes))}."
    return f"It has risen for {duration(60 * rise.minutes)}, and is not certain to be a leak yet."


def _leaks(explanation: Explanation, leaks: Sequence[Leak], levels: MemoryGrowth) -> tuple[Leak, ...]:
    """What leaks, by component: by the judge of all levels, and by names whose growth has been even."""
    known = {leak.component: leak for leak in leaks}
    memory = Component("gpu_memory", str(levels.fastest_device)) if levels.is_on_gpu else MEMORY
    named: defaultdict[Component, float] = defaultdict(float)
    for finding in explanation.findings:
        if finding.is_leak and finding.steady:
            named[WORKERS if finding.kind == "worker" else memory] += finding.bytes_per_minute
    for component, rate in named.items():
        leak = Leak(component, "growth", rate, 0.0)
        known.setdefault(component, leak._replace(amount=levels.memory.of(leak).last or 0.0))
    return tuple(known.values())


def _is_named(component: Component, explanation: Explanation) -> bool:
    """Whether a leak of the explanation is the same growth."""
    kinds = ("gpu",) if component.resource == "gpu_memory" else _SAME_KINDS.get(component, ())
    return any(
        finding.type == str(component)
        or finding.kind in kinds
        or (component.resource == "buffer" and _is_of(finding.path, component.name))
        for finding in explanation.findings
        if finding.is_leak
    )


def _is_of(path: str | None, name: str) -> bool:
    return path is not None and (path == name or path.endswith(f".{name}"))
