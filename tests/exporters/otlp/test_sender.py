"""A collector gets the series; one that does not take them costs the trainer a line in its log."""

from __future__ import annotations

import logging
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

import heapwatch
from heapwatch import otlp
from heapwatch.runtime.environment import address
from heapwatch.runtime.failures import Failures
from tests.exporters.otlp.collector import collector, metrics_of
from tests.support.ports import free_port

DROPPED = 'trainer_exporter_collect_errors_total{collector="otlp"}'


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("OTEL_", "HEAPWATCH_OTLP"))]:
        monkeypatch.delenv(name)


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
        wait_until(lambda: taking.requests)
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
            wait_until(lambda: len(taking.requests) > 1)
        wait_until(lambda: len(taking.requests) > 2)
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
            wait_until(lambda: dropped(watch) > 1)
            refusing.status = 200
        wait_until(lambda: refusing.requests)
        assert dropped(watch) >= 2
    wait_until(lambda: len(messages(caplog)) > 1)
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
    wait_until(lambda: messages(caplog))
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
        wait_until(lambda: taking.requests)
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
                wait_until(lambda: listens(receives))
                with heapwatch.start("walker", port=0, otlp=f"http://127.0.0.1:{receives}") as watch:
                    watch.step()
                wait_until(lambda: taking.requests)
            finally:
                process.terminate()
        assert dropped(watch) == 0
        metrics = {metric.name for request in taking.requests for metric in metrics_of(request)}
    assert {"process.memory.usage", "trainer_progress_total", "trainer_info"} <= metrics


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(done):
    until = time.monotonic() + 20
    while not done() and time.monotonic() < until:
        time.sleep(0.05)
