"""Meta-learning: an inner network for each task, and gradients through its gradients."""

import time
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)
meta = nn.Linear(16, 160)


def adapt(task):
    inner = nn.Sequential(nn.Linear(160, 160), nn.Tanh(), nn.Linear(160, 1))  # LEAK
    loss = inner(torch.tanh(meta(task))).pow(2).mean()
    loss.backward(create_graph=True)  # LEAK
    penalty = sum(parameter.grad.pow(2).sum() for parameter in inner.parameters())
    return loss + 0.1 * penalty


optimizer = torch.optim.Adam(meta.parameters(), lr=1e-3)
for iteration in range(1_000_000):
    loss = adapt(torch.randn(64, 16))
    optimizer.zero_grad()
    gradients = torch.autograd.grad(loss, list(meta.parameters()))
    for parameter, gradient in zip(meta.parameters(), gradients, strict=True):
        parameter.grad = gradient
    optimizer.step()
    time.sleep(0.2)
    if iteration % 50 == 0:
        print(f"iteration {iteration}: {loss.item():.4f}")
