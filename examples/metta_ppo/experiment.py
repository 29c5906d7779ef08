"""The run of Weights & Biases that the trainer logs to, where there is one."""

import os
import sys
from typing import Any


def active_run() -> Any:
    """The active run, or a new one where the environment has WANDB_PROJECT or WANDB_RUN_ID; else None."""
    run = getattr(sys.modules.get("wandb"), "run", None)
    if run is None and {"WANDB_PROJECT", "WANDB_RUN_ID"} & os.environ.keys():
        import wandb  # a trainer that does not log needs no Weights & Biases

        run = wandb.init()
    return run
