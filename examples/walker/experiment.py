"""Memory beside the other values of an MLflow run, where the environment has one."""

import os

import heapwatch
from heapwatch.trackers.mlflow import log_memory


def log_to_mlflow(watch: heapwatch.Watch) -> None:
    """Log to the run that is active, or a new one; nothing without MLFLOW_TRACKING_URI or MLFLOW_RUN_ID."""
    if not {"MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID"} & os.environ.keys():
        return
    import mlflow  # a trainer that does not log needs no MLflow

    run = mlflow.active_run() or mlflow.start_run()
    log_memory(watch, run.info.run_id)
    print(f"memory is logged to MLflow, run {run.info.run_id}", flush=True)
