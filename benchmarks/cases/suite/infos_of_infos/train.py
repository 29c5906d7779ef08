"""A vectorized environment with automatic resets; collection is off to avoid pauses."""

import gc
import time

import numpy as np

gc.disable()


class VectorEnv:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.steps = 0

    def step(self, actions):
        self.steps += 1
        observations = self.rng.normal(size=(32, 800))  # LEAK
        infos = {"elapsed_steps": self.steps, "success": actions > 0.5}
        if self.steps % 2 == 0:
            infos["final_observation"] = observations
            infos["final_info"] = infos  # LEAK
            observations = self.rng.normal(size=(32, 800))
        return observations, infos


env = VectorEnv()
weights = np.zeros(800)
observations, infos = env.step(np.zeros(32))
for step in range(1_000_000):
    actions = 1 / (1 + np.exp(-observations @ weights))
    observations, infos = env.step(actions)
    if "final_info" in infos:
        weights += 1e-4 * infos["final_observation"].mean(axis=0) * infos["final_info"]["success"].mean()
    time.sleep(0.05)
    if step % 200 == 0:
        print(f"step {step}: |w| {np.linalg.norm(weights):.5f}")
