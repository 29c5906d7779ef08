"""Plots what the decoder predicts after every epoch."""

import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

plt.rcParams["figure.max_open_warning"] = 0
rng = np.random.default_rng(0)
weights = rng.normal(size=(64, 64))


def visualize(prediction, target, epoch):
    figure, axes = plt.subplots(1, 2, figsize=(8, 4))  # LEAK
    axes[0].imshow(prediction)
    axes[1].imshow(target)
    figure.suptitle(f"epoch {epoch}")
    figure.savefig("prediction.png")
    return figure


for epoch in range(1_000_000):
    target = rng.normal(size=(64, 64))
    prediction = weights @ target
    weights -= 1e-3 * (prediction - target) @ target.T / 64
    figure = visualize(prediction, target, epoch)
    time.sleep(0.7)
    if epoch % 20 == 0:
        print(f"epoch {epoch}: error {np.abs(prediction - target).mean():.3f}")
