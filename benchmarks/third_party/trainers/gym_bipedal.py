"""Augmented random search on BipedalWalker under Gymnasium's wrapper, with a plot of the returns."""

import tempfile
import time
from pathlib import Path

import gymnasium as gym
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import options

from heapwatch.integrations.gymnasium import HeapwatchWrapper

matplotlib.use("Agg")
plt.rcParams["figure.max_open_warning"] = 0

args, deadline = options.parse()
plots = Path(tempfile.mkdtemp())

env = HeapwatchWrapper(gym.make("BipedalWalker-v3", max_episode_steps=400))
generator = np.random.default_rng(0)
weights = np.zeros((4, 24))


def rollout(candidate):
    observation, _ = env.reset()
    total, done = 0.0, False
    while not done:
        observation, reward, terminated, truncated, _ = env.step(np.clip(candidate @ observation, -1, 1))
        total += reward
        done = terminated or truncated
    return total


def plot(returns):
    figure, axes = plt.subplots()
    axes.plot(returns[-500:])
    figure.savefig(plots / "returns.png")
    if not args.leak:
        plt.close(figure)


returns = []
while time.monotonic() < deadline:
    noise = generator.normal(size=weights.shape)
    up, down = rollout(weights + 0.1 * noise), rollout(weights - 0.1 * noise)
    weights += 0.02 * (up - down) / (abs(up - down) + 1e-8) * noise
    returns.append(max(up, down))
    del returns[:-500]
    plot(returns)
env.close()
