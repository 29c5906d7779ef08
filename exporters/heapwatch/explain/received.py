"""Explanations of other processes, from JSON."""

from __future__ import annotations

from typing import Any

from heapwatch.explain.findings import Explanation, Finding, narrative
from heapwatch.explain.sites import Site
from heapwatch.judge.component import Component
from heapwatch.judge.memory import TimeLeft
from heapwatch.judge.trainer import Leak

MOST_BYTES = 4 * 2**20
_REQUIRED = ("kind", "path", "type", "items", "bytes", "items_per_minute", "bytes_per_minute", "share")


def explanation_of(document: Any) -> Explanation:
    """The explanation in a document that another process made with `as_json`.

    Raises:
        ValueError: the document is no valid explanation.

    """
    try:
        explanation = _read(document)
        narrative(explanation)  # nothing in it may fail later
        explanation.as_json()
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"it is no explanation: {type(error).__name__}") from None
    return explanation


def _read(document: dict[str, Any]) -> Explanation:
    findings = []
    for entry in document["findings"]:
        values = {name: entry[name] for name in _REQUIRED}
        values |= {name: value for name, value in entry.items() if name in Finding.__dataclass_fields__}
        site = values.get("site")
        values["site"] = None if site is None else Site(**site)
        values["holders"] = tuple(values.get("holders") or ())
        findings.append(Finding(**values))
    time_left = document.get("time_to_limit_seconds")
    return Explanation(
        document["verdict"],
        float(document["seconds"]),
        float(document["growth_bytes_per_minute"]),
        float(document["explained_share"]),
        tuple(findings),
        str(document.get("detail", "")),
        None if time_left is None else TimeLeft(float(time_left["least"]), float(time_left["most"])),
        tuple(map(str, document.get("unread") or ())),
        float(document.get("gpu_growth_bytes_per_minute", 0.0)),
        bool(document.get("ends_on_gpu")),
        tuple(
            Leak(Component(one["resource"], one["component"]), one["reason"], float(one["per_minute"]), 0.0)
            for one in document.get("leaks") or ()
        ),
        str(document.get("after_cleanup", "")),
        int(document.get("other_machines", 0)),
    )
