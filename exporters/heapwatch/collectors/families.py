"""Makes metric families from values; a value of None is unknown and gets no sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from heapwatch.measure.sizing.deep_size import Size

Family = TypeVar("Family", GaugeMetricFamily, CounterMetricFamily)
Row = TypeVar("Row")
# The key is the value of the label, or a tuple of those of all labels.
Values = Mapping[Any, float | None]


def gauge(name: str, documentation: str, labels: str | tuple[str, ...], values: Values) -> GaugeMetricFamily:
    """A gauge with one label or several, and a sample for each of `values`."""
    return _with_samples(GaugeMetricFamily(name, documentation, labels=_names(labels)), values)


def gauges(
    labels: str | tuple[str, ...],
    rows: Mapping[Any, Row],
    *columns: tuple[str, str, Callable[[Row], float | None]],
) -> Iterator[GaugeMetricFamily]:
    """A gauge for each of `columns`: its name, its documentation, and how a row's value is read."""
    for name, documentation, value_of in columns:
        yield gauge(name, documentation, labels, {key: value_of(row) for key, row in rows.items()})


def counter(
    name: str, documentation: str, labels: str | tuple[str, ...], values: Values
) -> CounterMetricFamily:
    """A counter with one label or several, and a sample for each of `values`."""
    return _with_samples(CounterMetricFamily(name, documentation, labels=_names(labels)), values)


def offheap_bytes(prefix: str, label: str, sizes: Mapping[str, Size]) -> GaugeMetricFamily:
    """The family `<prefix>_offheap_bytes`: bytes of each named object outside the heap, by place."""
    values = {
        (name, place): nbytes
        for name, size in sizes.items()
        for place, nbytes in (
            ("gpu", size.gpu_bytes),
            ("mapped", size.mapped_bytes),
            ("shared", size.shared_bytes),
        )
        if nbytes
    }
    return gauge(
        f"{prefix}_offheap_bytes",
        "Bytes held outside the heap: on the gpu, in file-backed pages (mapped), in shared memory (shared).",
        (label, "place"),
        values,
    )


def _with_samples(family: Family, values: Values) -> Family:
    for labels, value in values.items():
        if value is not None:
            family.add_metric(_names(labels), value)
    return family


def _names(labels: str | tuple[str, ...]) -> tuple[str, ...]:
    return (labels,) if isinstance(labels, str) else labels
