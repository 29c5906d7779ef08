"""A collector gets every series under its name or that of the semantic conventions.

One that does not take them costs the trainer a line in its log.
"""

from __future__ import annotations

import gzip
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.semconv._incubating.attributes import cpython_attributes
from opentelemetry.semconv._incubating.metrics import cpython_metrics, process_metrics

import heapwatch
from heapwatch import otlp
from heapwatch.collectors.process import StandardCollector
from heapwatch.otlp import CONVENTIONS, GENERATION, Encoder, unit_of
from heapwatch.runtime.environment import address
from heapwatch.runtime.failures import Failures
from tests.support.ports import free_port
from tests.support.waiting import wait_for

DROPPED = 'trainer_exporter_collect_errors_total{collector="otlp"}'


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("OTEL_", "HEAPWATCH_OTLP"))]:
        monkeypatch.delenv(name)


class Collector:
    """It takes OTLP over HTTP, as far as the protocol goes: protobuf in, protobuf out."""

    def __init__(self) -> None:
        self.requests: list[ExportMetricsServiceRequest] = []
        self.status = 200
        self.asked = threading.Event()
        self.released = threading.Event()
        self.released.set()
        self.url = ""

    def metrics(self) -> dict[str, Any]:
        """The metrics of the newest batch, by name."""
        found = metrics_of(self.requests[-1])
        metrics = {metric.name: metric for metric in found}
        assert len(metrics) == len(found)
        return metrics

    def resource(self) -> dict[str, str]:
        (resource,) = self.requests[-1].resource_metrics
        return {one.key: one.value.string_value for one in resource.resource.attributes}


def metrics_of(request: ExportMetricsServiceRequest) -> list[Any]:
    (resource,) = request.resource_metrics
    (scope,) = resource.scope_metrics
    return list(scope.metrics)


@contextmanager
def collector() -> Iterator[Collector]:
    state = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            state.asked.set()
            assert self.path == "/v1/metrics"
            assert self.headers["Content-Type"] == "application/x-protobuf"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            state.released.wait(30)
            if state.status == 200:
                state.requests.append(ExportMetricsServiceRequest.FromString(body))
            answer = ExportMetricsServiceResponse().SerializeToString()
            self.send_response(state.status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        state.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            state.released.set()
            server.shutdown()


def batch(*families):
    (resource,) = Encoder("walker").batch(families).resource_metrics
    (scope,) = resource.scope_metrics
    return {metric.name: metric for metric in scope.metrics}


def test_the_conventions_are_those_of_the_package_that_states_them():
    assert cpython_attributes.CPYTHON_GC_GENERATION == GENERATION
    for known in CONVENTIONS.values():
        stated = process_metrics if known.name.startswith("process.") else cpython_metrics
        constant = known.name.replace(".", "_").upper()
        assert getattr(stated, constant) == known.name
        source = re.search(rf'{constant}: Final = .+?\n"""(.+?)"""', text_of(stated), re.DOTALL)
        assert source is not None
        assert f"Unit: {known.unit}\n" in source[1]
        assert f"Instrument: {'counter' if known.is_monotonic else 'updowncounter'}\n" in source[1]


def text_of(module):
    with open(module.__file__, encoding="utf-8") as stream:
        return stream.read()


def test_what_the_python_client_reports_has_the_names_of_the_conventions():
    families = list(StandardCollector().collect())
    metrics = batch(*families)
    assert CONVENTIONS.keys() & metrics.keys() == set()
    assert {known.name for known in CONVENTIONS.values()} <= metrics.keys()
    counted = {
        sample.labels["generation"]: sample.value
        for family in families
        for sample in family.samples
        if sample.name == "python_gc_collections_total"
    }
    points = metrics["cpython.gc.collections"].data.data_points
    assert {str(point.attributes[GENERATION]): point.value for point in points} == counted
    assert metrics["process.memory.usage"].data.data_points[0].value > 1e6
    assert metrics["cpython.gc.collections"].data.is_monotonic
    assert not metrics["process.memory.usage"].data.is_monotonic


def test_a_counter_is_a_sum_since_the_start_of_the_process_and_a_gauge_is_one():
    steps = CounterMetricFamily("trainer_progress", "Steps.", labels=["unit"])
    steps.add_metric(["step"], 7)
    held = GaugeMetricFamily("trainer_buffer_bytes", "Bytes.", labels=["buffer"])
    held.add_metric(["replay"], 1.5e9)
    held.add_metric([""], 3)
    metrics = batch(steps, held)
    counter, gauge = metrics["trainer_progress_total"], metrics["trainer_buffer_bytes"]
    (point,) = counter.data.data_points
    assert (point.value, point.attributes, counter.unit) == (7, {"unit": "step"}, "")
    assert (counter.data.is_monotonic, counter.data.aggregation_temporality) == (True, 2)
    assert 0 < point.start_time_unix_nano < point.time_unix_nano
    assert [(one.value, one.attributes) for one in gauge.data.data_points] == [
        (1.5e9, {"buffer": "replay"}),
        (3, {}),
    ]
    assert (gauge.unit, gauge.description) == ("By", "Bytes.")


def test_a_summary_is_a_histogram_without_bounds():
    took = SummaryMetricFamily("trainer_phase_duration_seconds", "Seconds.", labels=["phase"])
    took.add_metric(["train"], count_value=3, sum_value=1.5)
    metric = batch(took)["trainer_phase_duration_seconds"]
    (point,) = metric.data.data_points
    assert (point.count, point.sum, point.attributes, metric.unit) == (3, 1.5, {"phase": "train"}, "s")


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("trainer_cleanup_freed_bytes_total", "By"),
        ("trainer_exporter_budget_ratio", "1"),
        ("trainer_memory_growth_bytes_per_minute", ""),
        ("trainer_bodies", ""),
    ],
)
def test_the_unit_is_the_last_word_of_the_name(name, unit):
    assert unit_of(name) == unit


def families(watch):
    return {sample.name for family in watch._exporter.exposition.collect() for sample in family.samples}


def dropped(watch):
    return watch._exporter.failures.counts["otlp"]


def messages(caplog):
    return [record.getMessage() for record in caplog.records if "OTLP" in record.getMessage()]


def test_a_collector_gets_every_series_at_the_end_at_the_latest(monkeypatch):
    with collector() as taking:
        monkeypatch.setenv("HEAPWATCH_OTLP", taking.url)
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=rl")
        replay = [0.5] * 1000
        with heapwatch.start("walker", port=0) as watch:
            watch.buffer("replay", replay, capacity=2000)
            with watch.phase("train"):
                watch.step()
            named = families(watch)
        wait_for(lambda: taking.requests)
        assert len(taking.requests) == 1
        metrics, resource = taking.metrics(), taking.resource()
    summary = "trainer_phase_duration_seconds"
    assert {f"{summary}_count", f"{summary}_sum"} <= named
    ours = {re.sub("_(count|sum)$", "", name) for name in named if name.startswith("trainer_")}
    assert ours <= metrics.keys()
    (point,) = metrics["trainer_buffer_items"].gauge.data_points
    assert point.as_double == 1000
    assert [(one.key, one.value.string_value) for one in point.attributes] == [("buffer", "replay")]
    (point,) = metrics["trainer_progress_total"].sum.data_points
    assert point.as_double == 1
    assert metrics["trainer_progress_total"].sum.is_monotonic
    (point,) = metrics[summary].histogram.data_points
    assert (point.count, point.HasField("min"), point.HasField("max")) == (1, False, False)
    assert (resource["service.name"], resource["team"]) == ("walker", "rl")


@pytest.mark.slow
def test_batches_follow_each_other_and_the_environment_names_the_service(monkeypatch):
    with collector() as taking:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", taking.url)
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "1")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "training")
        with heapwatch.start("walker", port=0, otlp="on"):
            wait_for(lambda: len(taking.requests) > 1)
        wait_for(lambda: len(taking.requests) > 2)
        assert taking.resource()["service.name"] == "training"


@pytest.mark.slow
def test_a_refused_batch_is_dropped_counted_and_said_once(monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    with collector() as refusing:
        refusing.status = 400
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "1")
        with heapwatch.start("walker", port=0, otlp=f"{refusing.url}/v1/metrics") as watch:
            assert dropped(watch) == 0
            assert "trainer_exporter_collect_errors_total" in families(watch)
            wait_for(lambda: dropped(watch) > 1)
            refusing.status = 200
        wait_for(lambda: refusing.requests)
        assert dropped(watch) >= 2
    wait_for(lambda: len(messages(caplog)) > 1)
    first, last = messages(caplog)
    assert "400" in first
    assert DROPPED in first
    assert f"again; {dropped(watch)} batches were dropped" in last
    assert [record for record in caplog.records if record.name.startswith("opentelemetry")] == []


@pytest.mark.slow
def test_where_nothing_listens_the_trainer_continues_and_ends(caplog):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        watch = heapwatch.start("walker", port=0, otlp=f"http://127.0.0.1:{bound.getsockname()[1]}")
        watch.step()
        began = time.monotonic()
        watch.stop()
        assert time.monotonic() - began < 10
    wait_for(lambda: messages(caplog))
    assert dropped(watch) == 1
    assert "refused" in messages(caplog)[0]


@pytest.mark.slow
def test_a_collector_that_never_answers_holds_nothing_up():
    with collector() as hanging:
        hanging.released.clear()
        watch = heapwatch.start("walker", port=0, otlp=hanging.url)
        began = time.monotonic()
        watch.stop()
        assert hanging.asked.wait(10)
        assert time.monotonic() - began < 10


def test_a_forked_child_sends_nothing():
    with collector() as taking:
        watch = heapwatch.start("walker", port=0, otlp=taking.url)
        child = os.fork()
        if not child:
            sender = watch._exporter.sender
            watch.stop()
            os._exit(0 if sender is None else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert taking.requests == []
        watch.stop()
        wait_for(lambda: taking.requests)
        assert len(taking.requests) == 1


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", None),
        ("off", None),
        ("on", ""),
        ("https://otel.example.com/otlp", "https://otel.example.com/otlp"),
        ("otel:4317", None),
        ("grpc://otel:4317", None),
    ],
)
def test_the_variable_is_off_on_or_an_address(text, found):
    assert address("HEAPWATCH_OTLP", {"HEAPWATCH_OTLP": text}) == found


def test_the_path_is_added_once(monkeypatch):
    given = []
    monkeypatch.setattr(otlp, "OTLPMetricExporter", lambda endpoint: given.append(endpoint) or Nothing())
    for url in ("http://otel:4318", "http://otel:4318/", "http://otel:4318/v1/metrics", ""):
        otlp.Sender("walker", list, Failures(), url).stop()
    assert given == ["http://otel:4318/v1/metrics"] * 3 + [None]


class Nothing:
    def export(self, batch):
        raise ValueError("no")

    def shutdown(self):
        pass


ABSENT = """
import importlib.abc, logging, sys
logging.basicConfig(level=logging.INFO)

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

if "absent" in sys.argv:
    sys.meta_path.insert(0, Absent())
import heapwatch
with heapwatch.start("bare", port=0) as watch:
    watch.step()
print(*(name for name in sys.modules if name.startswith("opentelemetry")))
"""


@pytest.mark.parametrize("arguments", [["absent"], []])
def test_without_the_extra_a_line_says_so_and_without_the_variable_nothing_is_loaded(arguments):
    variable = {"HEAPWATCH_OTLP": "http://127.0.0.1:9"} if arguments else {}
    done = subprocess.run(
        [sys.executable, "-c", ABSENT, *arguments],
        env=os.environ | variable,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == ""
    assert done.stderr.count("pip install 'heapwatch[otlp]'") == len(arguments)


def test_a_real_collector_takes_the_series_and_passes_them_on(tmp_path):
    """Rotel reads them as its own kind and writes them anew."""
    rotel = pytest.importorskip("rotel", reason="`make test-collector` installs it")
    agent = Path(rotel.__file__).with_name("rotel-agent")
    receives = free_port()
    with collector() as taking, (tmp_path / "rotel.log").open("w") as log:
        command = [
            agent,
            "start",
            f"--otlp-http-endpoint=127.0.0.1:{receives}",
            f"--otlp-grpc-endpoint=127.0.0.1:{free_port()}",
            "--exporter=otlp",
            "--otlp-exporter-protocol=http",
            f"--otlp-exporter-endpoint={taking.url}",
            "--batch-timeout=50ms",
        ]
        with subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT) as process:
            try:
                wait_for(lambda: listens(receives))
                with heapwatch.start("walker", port=0, otlp=f"http://127.0.0.1:{receives}") as watch:
                    watch.step()
                wait_for(lambda: taking.requests)
            finally:
                process.terminate()
        assert dropped(watch) == 0
        metrics = {metric.name for request in taking.requests for metric in metrics_of(request)}
    assert {"process.memory.usage", "trainer_progress_total", "trainer_info"} <= metrics


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
