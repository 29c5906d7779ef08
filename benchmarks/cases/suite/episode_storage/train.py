"""Off-policy training from pixels on a TorchRL replay buffer of whole episodes."""

import time

import torch
from tensordict import TensorDict
from torchrl.data import ListStorage, ReplayBuffer

torch.manual_seed(0)
replay = ReplayBuffer(storage=ListStorage(max_size=1_000_000), batch_size=4)  # LEAK


def rollout(steps=20):
    pixels = torch.randint(0, 255, (steps, 3, 84, 84), dtype=torch.uint8)  # LEAK
    return TensorDict({"pixels": pixels, "reward": torch.rand(steps)}, batch_size=[steps])  # LEAK


weights = torch.zeros(3)
for episode in range(1_000_000):
    replay.add(rollout())  # LEAK
    batch = replay.sample()
    for trajectory in batch:
        weights += 1e-6 * trajectory["pixels"].float().mean(dim=(0, 2, 3)) * trajectory["reward"].mean()
    time.sleep(0.25)
    if episode % 40 == 0:
        print(f"episode {episode}: {weights.tolist()}")
