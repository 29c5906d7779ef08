"""Leaks 2 MB a second in an attribute of the trainer."""

import time


class Trainer:
    def __init__(self):
        self.history = []

    def train(self):
        while True:
            self.history.append(bytearray(10_000))
            time.sleep(0.005)


trainer = Trainer()
print("ready", flush=True)
trainer.train()
