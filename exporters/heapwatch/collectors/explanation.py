"""Exports the explainer's verdict and findings: containers and types that grow without a declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from heapwatch.collectors.families import counter, gauge, gauges
from heapwatch.judge.verdict import WORDS

MOST_PATHS = 20
_LONGEST_PATH = 120


class ExplanationCollector:
    """The verdict, the leaks, and up to 20 growing paths with their bytes.

    Args:
        explainer: an object with `now()` (an explanation), `judged_at` (Unix time in seconds) and `spent_on`
            (CPU seconds of the search so far, by activity).

    """

    name = "explanation"

    def __init__(self, explainer: Any) -> None:
        self._explainer = explainer

    def collect(self) -> Iterable[Metric]:
        """Yield the verdict, the growing paths and the cost of the search."""
        latest = self._explainer.now()
        yield GaugeMetricFamily(
            "trainer_judged_timestamp_seconds",
            "When the verdict was last renewed; absent before the first one.",
            self._explainer.judged_at,
        )
        yield gauge(
            "trainer_leak",
            "Growth per second of what leaks now, in bytes or items; absent where nothing leaks. Reason: "
            "growth, bound (more items than declared), graphs (tensors that keep their autograd graph), or "
            "retained (freed memory that malloc keeps).",
            ("resource", "component", "reason"),
            {(*leak.component, leak.reason): leak.per_minute / 60 for leak in latest.leaks},
        )
        yield gauge(
            "trainer_memory_verdict",
            "1 for the current verdict, 0 for the others.",
            "verdict",
            {word: float(word == latest.verdict) for word in WORDS},
        )
        yield GaugeMetricFamily(
            "trainer_memory_growth_bytes_per_minute",
            "Growth per minute of the trainer, its workers and its GPU memory, over the time observed.",
            latest.growth_bytes_per_minute,
        )
        yield gauge(
            "trainer_memory_time_to_limit_seconds",
            "Time until the memory is used up at the present rate: the least and the most; absent unless "
            "growth is certain and the time is within a week.",
            ("bound", "resource"),
            _time_left(latest),
        )
        yield GaugeMetricFamily(
            "trainer_memory_growth_explained_ratio",
            "Share of the process's growth that the findings account for; absent if nothing grows.",
            latest.explained_share if latest.growth_bytes_per_minute > 0 else None,
        )
        yield from _paths(latest.findings[:MOST_PATHS])
        yield counter(
            "trainer_explainer_seconds",
            "CPU seconds spent on finding what grows.",
            "activity",
            self._explainer.spent_on,
        )


def _time_left(latest: Any) -> dict[tuple[str, str], float]:
    resource = "gpu_memory" if latest.ends_on_gpu else "memory"
    bounds = {} if latest.time_left is None else latest.time_left._asdict()
    return {(bound, resource): seconds for bound, seconds in bounds.items()}


def _paths(findings: Iterable[Any]) -> Iterable[Metric]:
    findings_by_labels: dict[tuple[str, str, str], Any] = {}
    for finding in findings:
        findings_by_labels.setdefault(
            (_shorten(finding.path or finding.type), _shorten(finding.type), finding.kind), finding
        )
    labels = ("path", "type", "kind")
    yield from gauges(labels, findings_by_labels, *_PATH_FAMILIES)
    yield gauge(
        "trainer_growing_path_leak",
        "1 if a growing path is a leak: it has no bound, keeps rising, and its bytes are material.",
        (*labels, "site", "remedy"),
        {(*key, *_advice(finding)): float(finding.is_leak) for key, finding in findings_by_labels.items()},
    )


_PATH_FAMILIES: tuple[tuple[str, str, Callable[[Any], float | None]], ...] = (
    ("trainer_growing_path_bytes", "Bytes that a growing path holds.", lambda one: one.bytes),
    ("trainer_growing_path_items", "Items that a growing path holds.", lambda one: one.items),
    (
        "trainer_growing_path_capacity_items",
        "Bound of the items of a growing path.",
        lambda one: one.capacity_items,
    ),
    (
        "trainer_growing_path_fits",
        "1 if the remaining memory is enough for a growing path until it is full, 0 if not; absent without a "
        "bound, or if not known.",
        lambda one: None if one.fits is None else float(one.fits),
    ),
    (
        "trainer_growing_path_growth_bytes_per_minute",
        "Growth of a path per minute, over the time observed.",
        lambda one: None if one.kind == "level" and one.bytes is None else one.bytes_per_minute,
    ),
    (
        "trainer_growing_path_share_ratio",
        "Share of the process's growth that a path accounts for.",
        lambda one: one.share if one.kind != "level" else None,  # which may be all of it
    ),
)


def _advice(finding: Any) -> tuple[str, str]:
    """Source line of the growth, and the remedy."""
    site = finding.site
    location = "" if site is None else f"{site.file.rpartition('/')[2]}:{site.line}"
    return location, (finding.remedy or "").replace("`", "")  # no page renders a label's Markdown


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_PATH else text[: _LONGEST_PATH - 3] + "..."
