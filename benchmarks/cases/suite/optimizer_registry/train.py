"""Fine-tunes a fresh model for each fold with an optimizer that keeps its state in a registry."""

import itertools
import time

import numpy as np


class CPUAdam:
    states = {}
    identifiers = itertools.count()

    def __init__(self, parameters, learning_rate=1e-3) -> None:
        self.parameters = parameters
        self.learning_rate = learning_rate
        self.identifier = next(self.identifiers)
        CPUAdam.states[self.identifier] = {  # LEAK
            "mean": np.zeros_like(parameters),  # LEAK
            "variance": np.zeros_like(parameters),  # LEAK
        }

    def step(self, gradient):
        state = CPUAdam.states[self.identifier]
        state["mean"] += 0.1 * (gradient - state["mean"])
        state["variance"] += 0.001 * (gradient**2 - state["variance"])
        self.parameters -= self.learning_rate * state["mean"] / (np.sqrt(state["variance"]) + 1e-8)

    def destroy(self):
        del CPUAdam.states[self.identifier]


def train_fold(rng):
    parameters = rng.normal(size=40_000)
    optimizer = CPUAdam(parameters)  # LEAK
    for _ in range(4):
        optimizer.step(parameters - 1.0)
        time.sleep(0.08)
    return float(np.abs(parameters - 1.0).mean())


rng = np.random.default_rng(0)
for fold in range(1_000_000):
    error = train_fold(rng)
    if fold % 30 == 0:
        print(f"fold {fold}: error {error:.4f}")
