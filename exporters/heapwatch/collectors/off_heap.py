"""Bytes outside the trainer's own heap."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.core import GaugeMetricFamily

from heapwatch.measure.sizing.deep_size import Size


def offheap_bytes(prefix: str, label: str, sizes: Mapping[str, Size]) -> GaugeMetricFamily:
    """The family `<prefix>_offheap_bytes`: bytes outside the heap of each named object, by place."""
    family = GaugeMetricFamily(
        f"{prefix}_offheap_bytes",
        "Bytes held outside the heap: on the gpu, in file-backed pages (mapped), in shared memory (shared).",
        labels=[label, "place"],
    )
    for name, size in sizes.items():
        for place, held in (
            ("gpu", size.gpu_bytes),
            ("mapped", size.mapped_bytes),
            ("shared", size.shared_bytes),
        ):
            if held:
                family.add_metric([name, place], held)
    return family
