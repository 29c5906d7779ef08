"""Trains on the GPU; keeps `tensors` of each step, losses with their `graphs`, or the last few: `steady`."""

import collections
import sys
import time

import torch


class Learner:
    def __init__(self, leak):
        self.leak = leak
        self.network = torch.nn.Sequential(
            torch.nn.Linear(1024, 1024), torch.nn.Tanh(), torch.nn.Linear(1024, 4)
        ).cuda()
        self.optimizer = torch.optim.Adam(self.network.parameters())
        self.history = collections.deque(maxlen=50) if leak == "steady" else []

    def learn(self):
        states = torch.randn(256, 1024, device="cuda")
        loss = self.network(states).square().mean()
        self.optimizer.zero_grad()
        loss.backward(retain_graph=self.leak == "graphs")
        self.optimizer.step()
        self.keep(loss if self.leak == "graphs" else states)
        return float(loss.detach())

    def keep(self, value):
        self.history.append(value)


def train(learner):
    losses = collections.deque(maxlen=100)
    print("ready", flush=True)
    while True:
        losses.append(learner.learn())
        time.sleep(0.02)


if __name__ == "__main__":
    train(Learner(sys.argv[1]))
