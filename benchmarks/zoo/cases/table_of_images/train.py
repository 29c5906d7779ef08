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
    observation = rng.integers(0, 255, (256, 256, 3), dtype=np.uint8)
    weights += 1e-6 * observation.mean(axis=(0, 1))
    image = wandb.Image(observation)  # LEAK
    table.add_data(step, image, float(weights.sum()))  # LEAK
    time.sleep(0.15)
    if step % 60 == 59:
        run.log({"observations": table})
        print(f"step {step}: {weights.round(5)}")
