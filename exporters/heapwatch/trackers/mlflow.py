"""MLflow."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from heapwatch.trackers import CycleLogger
from heapwatch.watch import Watch

_MOST_METRICS = 1000  # that MLflow takes in one request
_NOT_ALLOWED = re.compile(r"[^\w./ :-]")  # in the name of a metric


def log_memory(watch: Watch, run_id: str, tracking_uri: str | None = None) -> None:
    """Log memory to a run at the end of each epoch or other cycle, whose number is the step.

    A tracking server that is slow or unreachable does not delay the trainer: values are dropped.

    Args:
        watch: the trainer's watch.
        run_id: such as `mlflow.active_run().info.run_id`.
        tracking_uri: by default the one that MLflow uses.

    """
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    client = MlflowClient(tracking_uri)

    def log(values: Mapping[str, float], cycle: int) -> None:
        now = round(time.time() * 1000)
        metrics = [Metric(_NOT_ALLOWED.sub("_", name), value, now, cycle) for name, value in values.items()]
        for first in range(0, len(metrics), _MOST_METRICS):
            client.log_batch(run_id, metrics[first : first + _MOST_METRICS])

    watch.exporter.add_sink(CycleLogger("mlflow", log))
