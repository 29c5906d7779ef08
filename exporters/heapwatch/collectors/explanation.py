"""The explainer's findings as series: undeclared containers and types that grow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from heapwatch.analysis.verdict import WORDS

MOST_PATHS = 20
_LONGEST_PATH = 120
_NAMED = ("container", "type")
_BESIDE = ("worker", "allocator")


class ExplanationCollector:
    """Up to 20 growing paths with their bytes, and their share of the process's growth.

    Args:
        read: returns the latest explanation: an object with `verdict`, `explained_share`,
            `growth_bytes_per_minute`, `time_left` and `findings`.
        spent: returns the CPU seconds of the search so far, by activity.

    """

    name = "explanation"

    def __init__(self, read: Callable[[], Any], spent: Callable[[], dict[str, float]]) -> None:
        self._read = read
        self._spent = spent

    def collect(self) -> Iterable[Metric]:
        """Yield the verdict, the growing paths and what finding them cost."""
        latest = self._read()
        verdict = GaugeMetricFamily(
            "trainer_memory_verdict", "1 for the current verdict, 0 for the others.", labels=["verdict"]
        )
        for name in WORDS:
            verdict.add_metric([name], float(name == latest.verdict))
        grown = GaugeMetricFamily(
            "trainer_memory_growth_bytes_per_minute",
            "Growth per minute of the trainer, its workers and its GPU memory, over the time observed.",
        )
        grown.add_metric([], latest.growth_bytes_per_minute)
        left = GaugeMetricFamily(
            "trainer_memory_time_to_limit_seconds",
            "Time until the memory is used up at the rate so far: the least and the most; absent unless "
            "growth is sure and that is within a week.",
            labels=["bound"],
        )
        if latest.time_left is not None:
            for bound, seconds in latest.time_left._asdict().items():
                left.add_metric([bound], seconds)
        share = GaugeMetricFamily(
            "trainer_memory_growth_explained_ratio",
            "Share of the process's growth that the findings account for; absent if nothing grows.",
        )
        if latest.growth_bytes_per_minute > 0:
            share.add_metric([], latest.explained_share)
        yield from (verdict, grown, left, share, *_named(latest), *_paths(latest.findings[:MOST_PATHS]))
        spent = CounterMetricFamily(
            "trainer_explainer_seconds", "CPU seconds spent on finding what grows.", labels=["activity"]
        )
        for activity, seconds in self._spent().items():
            spent.add_metric([activity], seconds)
        yield spent


def _named(latest: Any) -> Iterable[Metric]:
    """The sums of all leaks with a name, with which the rules confirm a leak sooner.

    The share is of the growth of memory in use by the trainer itself. Forked workers copy pages of their
    trainer, and objects that stay between freed ones make malloc keep more than they hold.
    """
    growth = GaugeMetricFamily(
        "trainer_named_leaks_growth_bytes_per_minute",
        "Growth per minute of containers and types that leak and have kept their rate; 0 where none leaks, "
        "absent where those that leak have not kept their rate for long.",
    )
    share = GaugeMetricFamily(
        "trainer_named_leaks_share_ratio",
        "Share of these in the growth of the process, without its workers and without freed memory that "
        "malloc keeps; absent without one.",
    )
    leaks = [one for one in latest.findings if one.is_leak and one.kind in _NAMED]
    steady = [one for one in leaks if one.steady]
    if not leaks:
        growth.add_metric([], 0.0)
    elif steady:
        named = sum(one.bytes_per_minute for one in steady)
        beside = sum(one.bytes_per_minute for one in latest.findings if one.kind in _BESIDE)
        own = latest.growth_bytes_per_minute - beside
        growth.add_metric([], named)
        share.add_metric([], named / own if own > named else 1.0)
    return growth, share


def _paths(findings: Iterable[Any]) -> Iterable[Metric]:
    labels = ["path", "type", "kind"]
    held = GaugeMetricFamily("trainer_growing_path_bytes", "Bytes that a growing path holds.", labels=labels)
    items = GaugeMetricFamily("trainer_growing_path_items", "Items that a growing path holds.", labels=labels)
    growth = GaugeMetricFamily(
        "trainer_growing_path_growth_bytes_per_minute",
        "Growth of a path per minute, over the time observed.",
        labels=labels,
    )
    share = GaugeMetricFamily(
        "trainer_growing_path_share_ratio",
        "Share of the process's growth that a path accounts for.",
        labels=labels,
    )
    leaks = GaugeMetricFamily(
        "trainer_growing_path_leak",
        "1 if a growing path is a leak: it has no bound, keeps rising, and its bytes are material.",
        labels=[*labels, "site", "remedy"],
    )
    capacity = GaugeMetricFamily(
        "trainer_growing_path_capacity_items", "Bound of the items of a growing path.", labels=labels
    )
    fits = GaugeMetricFamily(
        "trainer_growing_path_fits",
        "1 if the memory that is left suffices for a growing path until it is full, 0 if not; absent without "
        "a bound, or if not known.",
        labels=labels,
    )
    seen: set[tuple[str, str, str]] = set()
    for finding in findings:
        key = (_cut(finding.path or finding.type), _cut(finding.type), finding.kind)
        if key in seen:
            continue
        seen.add(key)
        if finding.bytes is not None:
            held.add_metric(key, finding.bytes)
        if finding.items is not None:
            items.add_metric(key, finding.items)
        if finding.capacity_items is not None:
            capacity.add_metric(key, finding.capacity_items)
        if finding.fits is not None:
            fits.add_metric(key, float(finding.fits))
        if finding.kind != "level" or finding.bytes is not None:
            growth.add_metric(key, finding.bytes_per_minute)
            share.add_metric(key, finding.share)
        site = finding.site
        where = "" if site is None else f"{site.file.rpartition('/')[2]}:{site.line}"
        remedy = (finding.remedy or "").replace("`", "")  # no page renders a label's Markdown
        leaks.add_metric([*key, where, remedy], float(finding.is_leak))
    return held, items, capacity, fits, growth, share, leaks


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_PATH else text[: _LONGEST_PATH - 3] + "..."
