"""Readers put observations into the dictionary of a manager; the learner takes some of them."""

import multiprocessing
import time

import numpy as np


def observe(rng):
    return rng.random(25_000)


def read(results, first):
    rng = np.random.default_rng(first)
    for number in range(first, 10_000_000, 2):
        results[number] = observe(rng)  # LEAK
        time.sleep(0.2)


if __name__ == "__main__":
    with multiprocessing.Manager() as manager:
        results = manager.dict()
        for first in (0, 1):
            multiprocessing.Process(target=read, args=(results, first), daemon=True).start()
        for step in range(1_000_000):
            time.sleep(1)
            if step % 10 == 0:
                print(f"step {step}: {len(results)} results")
