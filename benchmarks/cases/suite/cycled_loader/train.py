"""Trains for a number of steps on a loader that is cycled for ever."""

import itertools
import time

import torch
from torch import nn


class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        return torch.full((3, 64, 64), float(index % 7)) + torch.randn(3, 64, 64)


model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 16))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
batches = itertools.cycle(torch.utils.data.DataLoader(Images(), batch_size=8))
for step in range(1_000_000):
    batch = next(batches)  # LEAK
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.25)
    if step % 40 == 0:
        print(f"step {step}: loss {loss.item():.3f}")
