"""Trains on rollouts and may replay old ones from its history."""

import random
import time


class Buffer:
    def __init__(self, replay_window: int = 300) -> None:
        self.replay_window = replay_window
        self.rollout_history = []

    def update(self, rollouts):
        self.rollout_history.extend(rollouts)  # LEAK

    def sample(self, count):
        return random.sample(self.rollout_history[-self.replay_window :], count)


def generate(step, index):
    words = random.choices(["move", "left", "right", "goal", "wall", "key"], k=600)
    completion = " ".join(words)  # LEAK
    return {
        "prompt": f"step {step}, problem {index}",
        "completion": completion,
        "logprobs": [random.random() for _ in words],  # LEAK
        "reward": words.count("goal") / len(words),
    }


buffer = Buffer()
for step in range(1_000_000):
    buffer.update([generate(step, index) for index in range(16)])  # LEAK
    replayed = buffer.sample(8)
    time.sleep(0.2)
    if step % 30 == 0:
        print(f"step {step}: reward {sum(rollout['reward'] for rollout in replayed) / 8:.3f}")
