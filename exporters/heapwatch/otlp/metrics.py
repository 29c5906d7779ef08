"""The families of a scrape in the data model of OpenTelemetry."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import psutil
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.metrics.export import Metric as Exported
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from prometheus_client import Metric
from prometheus_client.samples import Sample

CUMULATIVE = AggregationTemporality.CUMULATIVE


class Convention(NamedTuple):
    """What the semantic conventions call a series of the Python client."""

    name: str
    unit: str
    is_monotonic: bool = False


CONVENTIONS = {
    "process_resident_memory_bytes": Convention("process.memory.usage", "By"),
    "process_virtual_memory_bytes": Convention("process.memory.virtual", "By"),
    "process_cpu_seconds_total": Convention("process.cpu.time", "s", True),
    "process_open_fds": Convention("process.unix.file_descriptor.count", "{file_descriptor}"),
    "python_gc_collections_total": Convention("cpython.gc.collections", "{collection}", True),
    "python_gc_objects_collected_total": Convention("cpython.gc.collected_objects", "{object}", True),
    "python_gc_objects_uncollectable_total": Convention("cpython.gc.uncollectable_objects", "{object}", True),
}
GENERATION = "cpython.gc.generation"
# The last word of a name, before `_total`, to the unit in UCUM; receivers add none that a name ends in.
UNITS = {"bytes": "By", "seconds": "s", "ratio": "1", "celsius": "Cel", "watts": "W"}


class Encoder:
    """Makes a batch of the families of one scrape.

    Args:
        trainer: the service's name, unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES has one.

    """

    def __init__(self, trainer: str) -> None:
        process = psutil.Process()
        self._began = int(process.create_time() * 1e9)  # counters begin at zero with the process
        self._resource = Resource(
            {
                "service.name": trainer,
                "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
                "host.name": socket.gethostname(),
                "process.pid": os.getpid(),
                "telemetry.sdk.language": "python",
            }
        ).merge(OTELResourceDetector().detect())

    def batch(self, families: Iterable[Metric]) -> MetricsData:
        """All samples, with the time of now."""
        now = time.time_ns()
        metrics = [metric for family in families for metric in self._metrics(family, now)]
        scope = ScopeMetrics(InstrumentationScope("heapwatch"), metrics, "")
        return MetricsData([ResourceMetrics(self._resource, [scope], "")])

    def _metrics(self, family: Metric, now: int) -> Iterable[Exported]:
        if family.type == "summary":
            yield self._summary(family, now)
            return
        by_name: dict[str, list[Sample]] = {}
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                by_name.setdefault(sample.name, []).append(sample)
        for name, samples in by_name.items():
            points = [
                NumberDataPoint(_attributes(name, sample.labels), self._began, now, float(sample.value))
                for sample in samples
            ]
            known = CONVENTIONS.get(name)
            if known is not None:
                data: Sum | Gauge = Sum(points, CUMULATIVE, known.is_monotonic)
                yield Exported(known.name, family.documentation, known.unit, data)
            else:
                data = Sum(points, CUMULATIVE, True) if family.type == "counter" else Gauge(points)
                yield Exported(name, family.documentation, unit_of(name), data)

    def _summary(self, family: Metric, now: int) -> Exported:
        """Sum and count as a histogram without bounds: the SDK has no summaries."""
        parts: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
        for sample in family.samples:
            part = parts.setdefault(tuple(sample.labels.items()), {})
            part[sample.name.removeprefix(family.name)] = sample.value
        points = [
            HistogramDataPoint(
                attributes=dict(labels),
                start_time_unix_nano=self._began,
                time_unix_nano=now,
                count=round(part["_count"]),
                sum=part["_sum"],
                bucket_counts=[],
                explicit_bounds=[],
                min=None,  # type: ignore[arg-type]  # not known
                max=None,  # type: ignore[arg-type]
            )
            for labels, part in parts.items()
            if part.keys() >= {"_count", "_sum"}
        ]
        return Exported(
            family.name, family.documentation, unit_of(family.name), Histogram(points, CUMULATIVE)
        )


def unit_of(name: str) -> str:
    """The unit of a series by its name; empty for a number of things."""
    return UNITS.get(name.removesuffix("_total").rpartition("_")[2], "")


def _attributes(name: str, labels: Mapping[str, str]) -> dict[str, str | int]:
    if name.startswith("python_gc_"):
        return {GENERATION: int(labels["generation"])}
    return {label: value for label, value in labels.items() if value}
