"""Declared buffers that keep autograd graphs: a leak that no number of items or bytes shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from heapwatch.collectors.buffers import HeldGraphs
from heapwatch.explain.findings import Explanation, Finding, ranked

REMEDY = "`tensor.detach().cpu()` before storing, or `.item()` for a number: each keeps its autograd graph"


def with_graphs(explanation: Explanation, held: Sequence[HeldGraphs]) -> Explanation:
    """Add a finding for each such buffer. The verdict is then a leak, whatever else was found."""
    if not held:
        return explanation
    others = list(explanation.findings)
    findings = []
    for buffer in held:
        same = next((one for one in others if _is_of(one.path, buffer.path)), None)
        if same is None:
            findings.append(_finding(buffer))
        else:
            others.remove(same)
            findings.append(replace(same, remedy=REMEDY, is_leak=True))
    return replace(explanation, verdict="leak", findings=ranked([*findings, *others]))


def _is_of(path: str | None, buffer: str) -> bool:
    return path is not None and (path == buffer or path.endswith(f".{buffer}"))


def _finding(buffer: HeldGraphs) -> Finding:
    return Finding(
        kind="buffer",
        path=buffer.path,
        type=f"{buffer.tensors:,.0f} tensors with their autograd graphs",
        items=None if buffer.items is None else round(buffer.items),
        bytes=None if buffer.nbytes is None else round(buffer.nbytes),
        items_per_minute=None,
        bytes_per_minute=0.0,
        share=0.0,
        capacity_items=None if buffer.capacity is None else round(buffer.capacity),
        remedy=REMEDY,
        is_leak=True,
    )
