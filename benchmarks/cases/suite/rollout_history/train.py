"""Collects rollouts for 100 s a round, trains on all of them and begins anew."""

import time

import numpy as np

ROUND_SECONDS = 100


class Collector:
    def __init__(self):
        self.batch, self.history = [], []

    def collect(self, rng):
        rollout = rng.random(8_000)  # LEAK
        self.batch.append(rollout)
        self.history.append(rollout)  # LEAK

    def take(self):
        batch, self.batch = self.batch, []
        return batch


def main():
    rng, collector, weights = np.random.default_rng(0), Collector(), np.zeros(8_000)
    for number in range(1_000_000):
        until = time.monotonic() + ROUND_SECONDS
        while time.monotonic() < until:
            collector.collect(rng)
            time.sleep(0.05)
        for rollout in collector.take():
            weights += 1e-3 * (rollout - weights)
        print(f"round {number}: |w| {np.linalg.norm(weights):.3f}")


main()
