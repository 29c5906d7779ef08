"""Tracks the distribution of returns with a metric that concatenates what it sees."""

import time

import torch
from torchmetrics import CatMetric

torch.manual_seed(0)
returns = CatMetric()
policy = torch.zeros(20_000)

for epoch in range(1_000_000):
    for _ in range(20):
        sample = policy + torch.randn(20_000)  # LEAK
        returns.update(sample)  # LEAK
        policy += 0.01 * sample.mean()
        time.sleep(0.05)
    if epoch % 5 == 4:
        values = returns.compute()
        print(f"epoch {epoch}: median return {values[-20_000:].median().item():.3f}")
