"""Sends the series of a trainer to an OpenTelemetry collector, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.environment_variables import OTEL_METRIC_EXPORT_INTERVAL
from opentelemetry.sdk.metrics.export import MetricExportResult
from prometheus_client import Metric

from heapwatch.measure.gpu import allow_capture
from heapwatch.measure.introspection.roots import OWN_THREADS
from heapwatch.otlp.metrics import Encoder
from heapwatch.runtime import environment
from heapwatch.runtime.failures import Failures, raised
from heapwatch.runtime.plain_text import plain

log = logging.getLogger("heapwatch")

NAME = "otlp"  # in `trainer_exporter_collect_errors_total`
PATH = "v1/metrics"
_INTERVAL_MS, _MOST_MS = 60_000, 86_400_000  # the default is OpenTelemetry's
_LAST_SECONDS = 2.0  # for the batch at the end


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
