"""Imitation from images with two DataLoader workers, which end and start anew with each epoch."""

import time

import options
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import heapwatch


class Frames(Dataset):
    def __len__(self):
        return 3000

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.rand((3, 48, 48), generator=generator), index % 6


def main():
    args, deadline = options.parse()

    watch = heapwatch.start("imitation")
    model = nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 10 * 10, 128), nn.ReLU(), nn.Linear(128, 6),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(Frames(), batch_size=32, shuffle=True, num_workers=2)
    hard_examples = []
    epoch = 0
    while time.monotonic() < deadline:
        for batch, (images, actions) in enumerate(loader):
            losses = nn.functional.cross_entropy(model(images), actions, reduction="none")
            optimizer.zero_grad()
            losses.mean().backward()
            optimizer.step()
            if args.leak and batch % 4 == 0:
                hard_examples.append(images[losses.topk(8).indices].clone())
            watch.step()
        epoch += 1
        watch.progress("epoch")
        print(f"epoch {epoch}: loss {losses.mean().item():.3f}")


if __name__ == "__main__":
    main()
