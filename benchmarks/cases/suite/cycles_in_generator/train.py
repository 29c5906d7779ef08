"""Trains on several data sets at once, as long as the longest lasts."""

import itertools
import time

import numpy as np


class Recordings:
    def __init__(self, seed: int, length: int) -> None:
        self.seed, self.length = seed, length

    def __iter__(self):
        rng = np.random.default_rng(self.seed)
        for _ in range(self.length):
            yield rng.normal(size=(16, 1500))  # LEAK


class LongCycler:
    """Cycles through the loaders until the longest is exhausted."""

    def __init__(self, loaders) -> None:
        self.loaders = loaders

    def __iter__(self):
        cycles = [itertools.cycle(loader) for loader in self.loaders.values()]
        for _ in range(max(loader.length for loader in self.loaders.values())):
            for key, batches in zip(self.loaders, cycles, strict=True):
                yield key, next(batches)  # LEAK


loaders = {"mouse": Recordings(0, 1_000_000), "monkey": Recordings(1, 80)}
readouts = {key: np.zeros(1500) for key in loaders}
for step, (key, batch) in enumerate(LongCycler(loaders)):  # LEAK
    readouts[key] += 1e-3 * (batch.mean(axis=0) - readouts[key])
    time.sleep(0.07)
    if step % 200 == 0:
        print(f"step {step}: { ({name: round(float(np.abs(r).mean()), 5) for name, r in readouts.items()}) }")
