"""A policy server: clients put samples in a queue, the learner takes them out."""

import queue
import threading
import time

import numpy as np


class PolicyServerInput:
    def __init__(self) -> None:
        self.samples_queue = queue.Queue()

    def serve(self):
        rng = np.random.default_rng(0)
        while True:
            sample = {"obs": rng.normal(size=(50, 80)), "rewards": rng.random(50)}  # LEAK
            self.samples_queue.put(sample)  # LEAK
            time.sleep(0.01)

    def next(self):
        return self.samples_queue.get()


server = PolicyServerInput()
threading.Thread(target=server.serve, daemon=True).start()
weights = np.zeros(80)
for iteration in range(1_000_000):
    batch = [server.next() for _ in range(2)]
    for sample in batch:
        weights += 1e-3 * sample["obs"].T @ sample["rewards"]
    time.sleep(0.05)  # several SGD iterations
    if iteration % 100 == 0:
        print(f"iteration {iteration}: |w| {np.linalg.norm(weights):.3f}")
