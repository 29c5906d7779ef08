"""Switches tracing off and on around each evaluation; spans are exported by a thread."""

import queue
import threading
import time

import numpy as np


class BatchSpanProcessor:
    def __init__(self) -> None:
        self.buffer = np.ones((128, 800))  # LEAK
        self.spans = queue.Queue(maxsize=2048)
        self.worker = threading.Thread(target=self.run, daemon=True)  # LEAK
        self.worker.start()  # LEAK

    def run(self):
        exported = 0
        while (span := self.spans.get()) is not None:
            self.buffer[exported % 128] = span
            exported += 1

    def shutdown(self):
        self.spans.put(None)
        self.worker.join()


class Tracing:
    def __init__(self) -> None:
        self.processor = None

    def enable(self):
        self.processor = BatchSpanProcessor()  # LEAK

    def disable(self):
        self.processor = None


tracing = Tracing()
rng = np.random.default_rng(0)
for evaluation in range(1_000_000):
    tracing.enable()
    for _ in range(10):
        tracing.processor.spans.put(rng.random())
        time.sleep(0.04)
    tracing.disable()
    time.sleep(0.1)
    if evaluation % 20 == 0:
        print(f"evaluation {evaluation}: {threading.active_count()} threads")
