"""Trains, and benchmarks the activations of the model every few steps."""

import time

import torch
from torch import nn


class ActivationHook:
    def __init__(self, layer) -> None:
        self.total = torch.zeros(64, 2048)  # LEAK
        self.handle = layer.register_forward_hook(self)  # LEAK

    def __call__(self, layer, inputs, output):
        self.total += output.detach()

    def close(self):
        self.handle.remove()


class Benchmark:
    def __init__(self, model) -> None:
        self.model = model

    def run(self, data):
        hooks = [ActivationHook(layer) for layer in self.model if isinstance(layer, nn.ReLU)]  # LEAK
        self.model(data)
        density = [hook.total.count_nonzero().item() / hook.total.numel() for hook in hooks]
        return density


model = nn.Sequential(nn.Linear(32, 2048), nn.ReLU(), nn.Linear(2048, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
benchmark = Benchmark(model)
for step in range(1_000_000):
    loss = model(torch.randn(64, 32)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    density = benchmark.run(torch.randn(64, 32))
    time.sleep(0.4)
    if step % 30 == 0:
        print(f"step {step}: loss {loss.item():.3f}, density {density}")
