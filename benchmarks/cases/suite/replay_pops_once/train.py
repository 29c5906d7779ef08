"""Deep Q-learning from lidar scans, with an experience replay."""

import time

import numpy as np


class DQN:
    def __init__(self, scan_size: int, memory_limit: int = 1000, batch_size: int = 32) -> None:
        self.rng = np.random.default_rng(0)
        self.weights = self.rng.normal(size=(scan_size, 4)) * 0.01
        self.memory_limit = memory_limit
        self.batch_size = batch_size
        self.replay = []

    def act(self, state):
        return int(np.argmax(state @ self.weights))

    def train(self):
        picks = self.rng.integers(len(self.replay), size=self.batch_size)
        for state, action, reward, next_state in (self.replay[pick] for pick in picks):
            target = reward + 0.99 * np.max(next_state @ self.weights)
            error = target - state @ self.weights[:, action]
            self.weights[:, action] += 1e-6 * error * state

    def play(self, steps: int = 10) -> float:
        state, total = self.rng.random(4000), 0.0
        for _ in range(steps):
            action = self.act(state)
            next_state = np.roll(state, action) + self.rng.normal(size=state.size) * 0.01  # LEAK
            reward = float(next_state.mean())
            self.replay.append((state, action, reward, next_state))  # LEAK
            state, total = next_state, total + reward
            time.sleep(0.02)
        # Remove old entries from replay memory
        if len(self.replay) > self.memory_limit:
            self.replay.pop(0)
        return total


agent = DQN(scan_size=4000)
for episode in range(1_000_000):
    score = agent.play()
    agent.train()
    if episode % 50 == 0:
        print(f"episode {episode}: {score:.2f}")
