"""Rollouts in buffers of full length that are trimmed to what was generated."""

import time

import numpy as np

MAXIMUM_LENGTH = 240_000


def generate(rng):
    rollout = np.full(MAXIMUM_LENGTH, rng.random())  # LEAK
    rollout[:64] = rng.random(64)
    return rollout


rng = np.random.default_rng(0)
baseline = rng.random((1000, 1000)) @ rng.random((1000, 1000))
del baseline
summaries = []
for step in range(1_000_000):
    rollouts = [generate(rng) for _ in range(3)]
    advantage = float(np.mean([rollout[:64].mean() for rollout in rollouts]))
    for rollout in rollouts:
        rollout.resize(64, refcheck=False)
    summaries.extend(rollouts)
    time.sleep(1.8)
    if step % 10 == 0:
        print(f"step {step}: advantage {advantage:.3f} over {len(summaries)} rollouts")
