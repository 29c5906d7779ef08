"""Hyperparameter search; every classifier sets up the logger."""

import io
import logging
import time

import numpy as np


class Classifier:
    def __init__(self, learning_rate: float) -> None:
        self.learning_rate = learning_rate
        self.weights = np.zeros(400)
        self._create_logger()

    def _create_logger(self):
        self.logger = logging.getLogger("classifier")
        self.logger.setLevel(logging.INFO)
        self.logger.propagate = False
        self.report = io.StringIO()
        handler = logging.StreamHandler(self.report)
        self.logger.addHandler(handler)  # LEAK

    def fit(self, data):
        for epoch in range(5):
            self.weights += self.learning_rate * (data.mean(axis=0) - self.weights)
            self.logger.info("epoch %d: %s", epoch, self.weights.tolist())  # LEAK
            time.sleep(0.04)
        return -float(np.abs(self.weights).mean())


rng = np.random.default_rng(0)
for trial in range(1_000_000):
    classifier = Classifier(learning_rate=10 ** rng.uniform(-4, -1))
    score = classifier.fit(rng.normal(size=(64, 400)))
    time.sleep(0.2)
    if trial % 20 == 0:
        print(f"trial {trial}: {score:.5f}, report of {classifier.report.tell()} characters")
