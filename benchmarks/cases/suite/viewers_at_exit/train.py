"""Records each evaluation with a viewer that closes itself when the program ends."""

import atexit
import time

import numpy as np


class Viewer:
    def __init__(self) -> None:
        self.frames = np.zeros((10, 160, 160, 3), np.uint8)  # LEAK
        self.written = 0
        atexit.register(self.close)  # LEAK

    def record(self, frame):
        self.frames[self.written % 10] = frame
        self.written += 1

    def close(self):
        self.written = 0


rng = np.random.default_rng(0)
weights = np.zeros(3)
for update in range(1_000_000):
    viewer = Viewer()  # LEAK
    for _ in range(10):
        frame = rng.integers(0, 255, (160, 160, 3), dtype=np.uint8)
        weights += 1e-6 * frame.mean(axis=(0, 1))
        viewer.record(frame)
        time.sleep(0.03)
    viewer.close()
    time.sleep(0.2)
    if update % 20 == 0:
        print(f"update {update}: {weights.round(4)}")
