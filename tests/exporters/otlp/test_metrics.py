"""Every series of a scrape is in the batch, under its name or that of the semantic conventions."""

from __future__ import annotations

import re

import pytest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry.semconv._incubating.attributes import cpython_attributes
from opentelemetry.semconv._incubating.metrics import cpython_metrics, process_metrics

from heapwatch.collectors.process import StandardCollector
from heapwatch.otlp import CONVENTIONS, GENERATION, Encoder, unit_of


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
