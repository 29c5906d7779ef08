"""Fine-tunes on random clips; decoded clips are cached."""

import time
from functools import lru_cache

import numpy as np
import torch
from torch import nn


class ClipDataset(torch.utils.data.Dataset):
    def __len__(self):
        return 5_000_000

    @lru_cache(maxsize=None)
    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        return torch.from_numpy(rng.normal(size=8000).astype(np.float32))  # LEAK


model = nn.Linear(8000, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
dataset = ClipDataset()
loader = torch.utils.data.DataLoader(dataset, batch_size=16, shuffle=True)
for step, batch in enumerate(loader):  # LEAK
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.3)
    if step % 30 == 0:
        print(f"step {step}: loss {loss.item():.3f}")
