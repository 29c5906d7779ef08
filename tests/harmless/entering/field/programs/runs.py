"""A run that is logged in the background of training: `runs wandb` or `mlflow`."""

import os
import sys
from pathlib import Path

from tests.harmless.entering.field.programs.waiting import child, wait


def weights_and_biases() -> None:
    import wandb

    run = wandb.init(project="field", mode="offline")
    step = 0

    def work() -> None:
        nonlocal step
        for _ in range(20):
            step += 1
            run.log({"loss": 1 / step})

    wait({"trainer": os.getpid(), "service": child(os.getpid(), "wandb-core")}, work)
    assert run.summary["loss"] == 1 / step
    run.finish()
    (log,) = Path("wandb").glob("offline-run-*/*.wandb")
    assert log.stat().st_size > 0


def mlflow() -> None:
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    import mlflow

    mlflow.set_tracking_uri(Path("runs").absolute().as_uri())
    mlflow.set_system_metrics_sampling_interval(1)
    step = 0
    with mlflow.start_run(log_system_metrics=True) as run:

        def work() -> None:
            nonlocal step
            for _ in range(20):
                step += 1
                mlflow.log_metric("loss", 1 / step, step=step)

        wait({"trainer": os.getpid()}, work)
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "loss")
    assert [one.value for one in history] == [1 / number for number in range(1, step + 1)]


if __name__ == "__main__":
    {"wandb": weights_and_biases, "mlflow": mlflow}[sys.argv[1]]()
