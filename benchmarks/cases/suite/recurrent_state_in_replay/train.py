"""Recurrent policy whose LSTM state is stored with the experience."""

import time
from collections import deque

import torch
from torch import nn

ENVIRONMENTS = 32


class Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTMCell(16, 192)
        self.value = nn.Linear(192, 1)

    def forward(self, observations, state):
        state = self.lstm(observations, state)
        return self.value(state[0]), state


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
experience = deque(maxlen=64)
state = (torch.zeros(ENVIRONMENTS, 192), torch.zeros(ENVIRONMENTS, 192))

for step in range(1_000_000):
    observations = torch.randn(ENVIRONMENTS, 16)
    _, state = policy(observations, state)  # LEAK
    experience.append((observations, state))  # LEAK
    if step % 16 == 15:
        old_observations, old_state = experience[-8]
        values, _ = policy(old_observations, tuple(part.detach() for part in old_state))
        loss = (values - torch.randn(ENVIRONMENTS, 1)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.3f}")
    time.sleep(0.12)
