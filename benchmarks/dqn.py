"""The trainer that the slowdown is measured on."""

from __future__ import annotations

from typing import Any


def dqn() -> Any:
    """Stable-Baselines3's DQN on CartPole, on one thread of a CPU."""
    import torch
    from stable_baselines3 import DQN

    torch.set_num_threads(1)
    return DQN(
        "MlpPolicy",
        "CartPole-v1",
        learning_starts=1000,
        buffer_size=50_000,
        train_freq=4,
        device="cpu",
        seed=1,
    )
