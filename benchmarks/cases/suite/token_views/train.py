"""Collects the class token of every frame that a vision encoder sees."""

import time

import torch
from torch import nn

torch.manual_seed(0)
patches = nn.Linear(48, 256)
encoder = nn.TransformerEncoderLayer(256, nhead=4, dim_feedforward=256, batch_first=True)
encoder.eval()
class_tokens = []

with torch.no_grad():
    for frame in range(1_000_000):
        image = torch.randn(1, 1024, 48)
        tokens = encoder(patches(image)).clone()  # LEAK
        class_tokens.append(tokens[:, 0])  # LEAK
        time.sleep(0.5)
        if frame % 20 == 19:
            spread = torch.stack(class_tokens[-20:]).std().item()
            print(f"frame {frame}: spread of the last class tokens {spread:.3f}")
