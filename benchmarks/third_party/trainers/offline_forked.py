"""Behaviour cloning from a data set in memory; ten forked DataLoader workers share its pages."""

import time

import numpy as np
import options
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import heapwatch


class Transitions(Dataset):
    def __init__(self):
        generator = np.random.default_rng(0)
        self.observations = generator.random((5_000_000, 120), dtype=np.float32)
        self.actions = generator.integers(0, 8, len(self.observations))

    def __len__(self):
        return len(self.observations)

    def __getitem__(self, index):
        return self.observations[index], self.actions[index]


def main():
    args, deadline = options.parse()

    watch = heapwatch.start("offline-forked")
    model = nn.Sequential(nn.Linear(120, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    loader = DataLoader(Transitions(), batch_size=8192, shuffle=True, num_workers=10, persistent_workers=True)
    predictions = []
    epoch = 0
    while time.monotonic() < deadline:
        for observations, actions in loader:
            logits = model(observations)
            loss = nn.functional.cross_entropy(logits, actions)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if args.leak:
                predictions.append(logits.detach())
            watch.step()
            if time.monotonic() > deadline:
                break
        epoch += 1
        watch.progress("epoch")
        print(f"epoch {epoch}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
