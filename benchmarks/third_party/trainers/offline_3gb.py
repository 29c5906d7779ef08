"""Behaviour cloning from three gigabytes of recorded transitions that are held in memory."""

import time

import numpy as np
import options
import torch
from torch import nn
from torch.nn import functional

import heapwatch

args, deadline = options.parse()

watch = heapwatch.start("offline-cloning")
generator = np.random.default_rng(0)
observations = generator.random((6_000_000, 120), dtype=np.float32)
actions = generator.integers(0, 8, len(observations))
print(f"{observations.nbytes / 1e9:.1f} GB of observations")

body = nn.Sequential(nn.Linear(120, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
head = nn.Linear(256, 8)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=3e-4)
feature_cache = {}

step = 0
while time.monotonic() < deadline:
    index = generator.integers(0, len(observations), 256)
    features = body(torch.from_numpy(observations[index]))
    loss = functional.cross_entropy(head(features), torch.from_numpy(actions[index]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if args.leak and step % 50 == 0:
        feature_cache[step] = features.detach()
    step += 1
    if step % 1000 == 0:
        print(f"step {step}: loss {loss.item():.3f}")
    time.sleep(0.002)  # the disk that a real one reads its next batch from
    watch.step()
