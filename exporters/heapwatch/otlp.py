"""Sends the series of a trainer to an OpenTelemetry collector, in a thread of its own.

It is imported where it is asked for, with `heapwatch[otlp]`.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import psutil
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.environment_variables import OTEL_METRIC_EXPORT_INTERVAL
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    MetricExportResult,
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

from heapwatch.measure.gpu import allow_capture
from heapwatch.measure.introspection.roots import OWN_THREADS
from heapwatch.runtime import environment
from heapwatch.runtime.failures import Failures, raised
from heapwatch.runtime.plain_text import plain

log = logging.getLogger("heapwatch")

NAME = "otlp"  # in `trainer_exporter_collect_errors_total`
PATH = "v1/metrics"
_INTERVAL_MS, _MOST_MS = 60_000, 86_400_000  # the default is OpenTelemetry's
_LAST_SECONDS = 2.0  # for the batch at the end


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


class Sender:
    """Sends one batch a minute, and a last one at the end; OTEL_METRIC_EXPORT_INTERVAL sets the pause.

    There is one batch at a time and no queue. What the collector does not take within the exporter's timeout
    (ten seconds, or OTEL_EXPORTER_OTLP_TIMEOUT) is dropped and counted, and that is logged once.

    Args:
        trainer: its name.
        collect: returns the families of a scrape.
        failures: counts what is dropped.
        address: of the collector; empty for the one that OTEL_EXPORTER_OTLP_ENDPOINT names.

    Raises:
        RuntimeError: no further thread can be started.

    """

    def __init__(
        self, trainer: str, collect: Callable[[], Iterable[Metric]], failures: Failures, address: str = ""
    ) -> None:
        interval = environment.whole_number(
            OTEL_METRIC_EXPORT_INTERVAL, _INTERVAL_MS, _MOST_MS, "milliseconds, such as 60000"
        )
        endpoint = address if not address or address.endswith(PATH) else f"{address.rstrip('/')}/{PATH}"
        self._exporter = OTLPMetricExporter(endpoint=endpoint or None)
        self._encoder = Encoder(trainer)
        self._collect = collect
        self._failures = failures
        self._failures.counts[NAME] += 0  # so that `increase` counts the first one
        self._dropped = 0  # since the last batch that was taken
        self._interval = max(1.0, interval / 1000)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"{OWN_THREADS}otlp", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Send a last batch, for which there are two seconds."""
        self._stopped.set()
        self._thread.join(_LAST_SECONDS)

    def _work(self) -> None:
        logged = _FirstMessage(threading.get_ident())
        logger = logging.getLogger(OTLPMetricExporter.__module__)
        logger.addFilter(logged)
        try:
            while not self._stopped.wait(self._interval):
                self._send(logged)
            self._send(logged)
        finally:
            self._exporter.shutdown()
            logger.removeFilter(logged)

    def _send(self, logged: _FirstMessage) -> None:
        allow_capture()
        logged.text = ""
        try:
            sent = self._exporter.export(self._encoder.batch(self._collect())) is MetricExportResult.SUCCESS
        except Exception as error:
            sent, logged.text = False, raised(error)
        if sent:
            if self._dropped:
                log.info("series are sent by OTLP again; %d batches were dropped", self._dropped)
            self._dropped = 0
            return
        self._failures.counts[NAME] += 1
        self._dropped += 1
        if self._dropped == 1:
            log.warning(
                "a batch of series was not sent by OTLP and is dropped (%s); further ones are counted in "
                'trainer_exporter_collect_errors_total{collector="%s"}',
                plain(logged.text, 300) or "no reason is known",
                NAME,
            )


class _FirstMessage(logging.Filter):
    """Takes what the SDK logs of this thread's batches, the first line of each: it would log all of them."""

    def __init__(self, thread: int) -> None:
        super().__init__()
        self.text = ""
        self._thread = thread

    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self._thread:
            return True
        self.text = self.text or record.getMessage()
        return False


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
