"""Programs that JAX compiled and keeps."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from heapwatch.measure.gpu import jax_programs


class CompiledCollector:
    """Counts compiled programs: there is one for each shape and each value of a static argument.

    JAX is never imported, and no backend is initialised.
    """

    name = "compiled"

    def collect(self) -> Iterable[Metric]:
        """Yield the count; a program without JAX has none."""
        family = GaugeMetricFamily("trainer_jax_compiled_programs", "Compiled programs that JAX keeps.")
        if (programs := jax_programs()) is not None:
            family.add_metric([], programs)
        yield family
