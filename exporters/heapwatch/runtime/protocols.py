"""The two interfaces of a metric source: collector and sampler."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from prometheus_client import Metric


@runtime_checkable
class Collector(Protocol):
    """Reads one source and yields its metric families, on the scrape thread.

    It reads what is cheap or already sampled and never touches live simulation objects. A family whose
    value could not be read is yielded without samples: the exposition leaves it out, the metrics reference
    still knows it. A failure of one source among several goes to `heapwatch.runtime.failures.Failures` and
    costs that source's series alone; an exception that leaves `collect` costs the collector all of them.
    """

    name: str

    def collect(self) -> Iterable[Metric]:
        """Yield the families."""
        ...


@runtime_checkable
class Sampler(Protocol):
    """Touches live objects of the trainer, in the trainer's own thread, at a safe point.

    `sample` runs at most every `interval` seconds, more rarely when its cost would exceed its share of
    the budget. It stores its result by one attribute assignment, which `collect` reads from the scrape
    thread. Whatever it raises is counted, and the series must drop rather than keep their last value.
    """

    name: str
    interval: float

    def sample(self) -> None:
        """Take one sample and keep it for `collect`."""
        ...
