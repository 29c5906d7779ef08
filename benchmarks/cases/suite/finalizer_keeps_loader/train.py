"""Evaluates checkpoints with a loader that cleans up after itself."""

import tempfile
import time
import weakref
from pathlib import Path

import numpy as np


class ArtifactLoader:
    def __init__(self, checkpoint) -> None:
        self.folder = Path(tempfile.mkdtemp())
        np.save(self.folder / "weights.npy", checkpoint)
        self.weights = np.load(self.folder / "weights.npy")  # LEAK
        self.finalizer = weakref.finalize(self, self.clean, self.folder)  # LEAK

    def clean(self, folder):
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()

    def evaluate(self, data):
        return float((data @ self.weights[:64]).mean())


rng = np.random.default_rng(0)
checkpoint = rng.normal(size=80_000)
for step in range(1_000_000):
    checkpoint += 1e-3 * rng.normal(size=checkpoint.size)
    loader = ArtifactLoader(checkpoint)  # LEAK
    score = loader.evaluate(rng.normal(size=(32, 64)))
    time.sleep(0.4)
    if step % 20 == 0:
        print(f"step {step}: {score:.3f}")
