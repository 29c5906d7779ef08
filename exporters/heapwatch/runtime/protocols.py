"""The two interfaces of a metric source: collector and sampler."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from prometheus_client import Metric


@runtime_checkable
class Collector(Protocol):
    """Reads one source and yields its metric families, on the scrape thread.

    It reads values that are cheap or already sampled, and never touches live simulation objects. If a value
    cannot be read, its family is yielded without samples: the exposition leaves it out, and the metrics
    reference still lists it. A failure of one source among several goes to
    `heapwatch.runtime.failures.Failures`, and only that source's series are missing. An exception from
    `collect` removes all series of the collector.
    """

    name: str

    def collect(self) -> Iterable[Metric]:
        """Yield the families."""
        ...


@runtime_checkable
class Sampler(Protocol):
    """Reads live objects of the trainer, in the training thread, at a safe point.

    `sample` runs at most every `interval` seconds, and less often if its cost would exceed its share of the
    budget. It stores its result in one attribute, which `collect` reads in the scrape thread. Its exceptions
    are counted; the series must then be absent and not keep their last value.
    """

    name: str
    interval: float

    def sample(self) -> None:
        """Take one sample and keep it for `collect`."""
        ...
