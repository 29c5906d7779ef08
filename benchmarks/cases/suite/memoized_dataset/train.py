"""A data set that skips broken samples and remembers those that it has loaded."""

import time
from functools import wraps

import numpy as np


def memoize(function):
    cache = {}

    @wraps(function)
    def wrapper(self, index):
        if index not in cache:
            cache[index] = function(self, index)  # LEAK
        return cache[index]

    return wrapper


class SafeDataset:
    def __init__(self, size: int) -> None:
        self.size = size

    @memoize
    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        return rng.normal(size=10_000)  # LEAK


dataset = SafeDataset(5_000_000)
rng = np.random.default_rng(0)
mean = np.zeros(10_000)
for step in range(1_000_000):
    for index in rng.integers(dataset.size, size=8):
        mean += 1e-3 * (dataset[int(index)] - mean)  # LEAK
    time.sleep(0.4)
    if step % 30 == 0:
        print(f"step {step}: |mean| {np.linalg.norm(mean):.3f}")
