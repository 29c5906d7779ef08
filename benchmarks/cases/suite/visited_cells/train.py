"""Explores a large grid: pages of the array of counts become resident as the explorer comes to them."""

import time

import numpy as np

CELLS = 60_000_000


class Explorer:
    def __init__(self):
        self.counts = np.zeros(CELLS, dtype=np.int32)
        self.visits = {}

    def visit(self, cell, observation):
        self.counts[cell : cell + 10_000] += 1
        self.visits[cell] = observation  # LEAK


def main():
    explorer, rng = Explorer(), np.random.default_rng(0)
    for step in range(1_000_000):
        explorer.visit(10_000 * step % CELLS, rng.random(12_500))  # LEAK
        time.sleep(0.1)
        if step % 100 == 0:
            print(f"step {step}: {int(explorer.counts[0])} visits of the first cell")


main()
