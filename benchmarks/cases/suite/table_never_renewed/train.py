"""Logs what the policy sees to a Weights & Biases table."""

import os
import time

os.environ["WANDB_MODE"] = "disabled"

import numpy as np
import wandb

run = wandb.init(project="pixels")
rng = np.random.default_rng(0)
columns = ["step", "observation", "value"]
table = wandb.Table(columns=columns)
weights = np.zeros(3)
for step in range(1_000_000):
    observation = rng.normal(size=(3, 72, 72))  # LEAK
    weights += 1e-3 * observation.mean(axis=(1, 2))
    table.add_data(step, observation, float(weights.sum()))  # LEAK
    time.sleep(0.08)
    if step % 120 == 119:
        run.log({"observations": table})
        print(f"step {step}: {weights.round(5)}")
