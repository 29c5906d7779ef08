"""Generates with a recurrent model in a thread while the main thread decodes."""

import queue
import threading
import time

import torch
from torch import nn

torch.manual_seed(0)
cell = nn.GRUCell(64, 192)
head = nn.Linear(192, 64)
generated = queue.Queue(maxsize=8)


def generate():
    state = torch.zeros(64, 192)
    frame = torch.zeros(64, 64)
    while True:
        state = cell(frame, state)  # LEAK
        frame = torch.tanh(head(state))  # LEAK
        generated.put(frame.detach().clone())
        time.sleep(0.12)


with torch.no_grad():
    threading.Thread(target=generate, daemon=True).start()
    decoder = nn.Linear(64, 256)
    for index in range(1_000_000):
        audio = decoder(generated.get())
        if index % 100 == 0:
            print(f"frame {index}: power {audio.pow(2).mean().item():.4f}")
