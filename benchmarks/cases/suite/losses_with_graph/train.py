"""Fits a value network and keeps the validation losses of every epoch."""

import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.MSELoss()
validation_losses = []

for epoch in range(1_000_000):
    for _ in range(2):
        states, returns = torch.randn(64, 64), torch.randn(64, 1)
        loss = criterion(model(states), returns)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.05)

    states, returns = torch.randn(256, 64), torch.randn(256, 1)
    validation_loss = criterion(model(states), returns)  # LEAK
    validation_losses.append(validation_loss)  # LEAK
    time.sleep(0.3)
    if epoch % 20 == 0:
        print(f"epoch {epoch}: validation {sum(float(loss) for loss in validation_losses[-20:]) / 20:.3f}")
