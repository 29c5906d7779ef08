"""Trains, and evaluates in environments that run in processes of their own."""

import multiprocessing
import time

import numpy as np


class Simulation:
    def __init__(self) -> None:
        self.map = np.random.default_rng(0).random((800, 800))

    def rollout(self, weights):
        return float((self.map[: weights.size, 0] * weights).sum())


def serve(connection):
    simulation = Simulation()
    while True:
        weights = connection.recv()
        if weights is None:
            return
        connection.send(simulation.rollout(weights))


class EvaluationEnv:
    def __init__(self) -> None:
        self.connection, remote = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=serve, args=(remote,), daemon=True)  # LEAK
        self.process.start()  # LEAK

    def evaluate(self, weights):
        self.connection.send(weights)
        return self.connection.recv()

    def close(self):
        self.connection.send(None)
        self.process.join()


weights = np.zeros(64)
rng = np.random.default_rng(1)
for update in range(1_000_000):
    candidate = weights + 0.1 * rng.normal(size=64)
    evaluation = EvaluationEnv()  # LEAK
    if evaluation.evaluate(candidate) > evaluation.evaluate(weights):
        weights = candidate
    time.sleep(2)
    print(f"update {update}: |w| {np.linalg.norm(weights):.3f}")
