"""Multi-agent Q-learning with a logger that keeps statistics by name."""

import time
from collections import defaultdict

import numpy as np


class Logger:
    def __init__(self) -> None:
        self.stats = defaultdict(list)

    def log_stat(self, key, value, t):
        self.stats[key].append((t, value))  # LEAK

    def print_recent_stats(self):
        for key, values in sorted(self.stats.items()):
            print(f"{key}: {np.mean([np.mean(value) for _, value in values[-5:]]):.3f}", end="  ")
        print()


def run_episode(q_table, rng):
    visits = np.zeros((96, 96))  # LEAK
    for cell in rng.integers(96, size=(200, 2)):
        visits[tuple(cell)] += 1
        q_table[tuple(cell)] += 0.1 * (rng.random() - q_table[tuple(cell)])
    return visits / visits.sum()  # LEAK


rng = np.random.default_rng(0)
q_table = np.zeros((96, 96))
logger = Logger()
for t in range(1_000_000):
    visits = run_episode(q_table, rng)
    logger.log_stat("return_mean", q_table.mean(), t)
    logger.log_stat("visits", visits, t)
    if t % 100 == 99:
        logger.print_recent_stats()
    time.sleep(0.04)
