"""Population-based training; each candidate computes its anchors once."""

import functools
import time

import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(256, 1024)  # LEAK
        self.head = nn.Linear(1024, 4)

    @functools.cache
    def anchors(self, size):
        return torch.linspace(-1, 1, size)

    def forward(self, states):
        return self.head(torch.relu(self.body(states))) * self.anchors(4)


best = float("-inf")
for candidate in range(1_000_000):
    policy = Policy()  # LEAK
    with torch.no_grad():
        score = policy(torch.randn(64, 256)).mean().item()  # LEAK
    best = max(best, score)
    time.sleep(0.6)
    if candidate % 20 == 0:
        print(f"candidate {candidate}: best {best:.3f}")
