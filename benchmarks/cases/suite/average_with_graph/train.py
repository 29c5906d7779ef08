"""GFlowNet-like training that tracks a moving average of the loss on terminal states."""

import time

import torch
from torch import nn


class Agent:
    def __init__(self) -> None:
        self.flow = nn.Sequential(nn.Linear(32, 256), nn.LeakyReLU(), nn.Linear(256, 256), nn.LeakyReLU())
        self.head = nn.Linear(256, 1)
        self.optimizer = torch.optim.Adam([*self.flow.parameters(), *self.head.parameters()], lr=1e-3)
        self.loss_ema = None

    def loss(self, states, rewards):
        return (self.head(self.flow(states)).squeeze(1) - rewards.log()).pow(2).mean()

    def learn(self):
        loss = self.loss(torch.randn(64, 32), torch.rand(64) + 0.1)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def track(self):
        terminal_loss = self.loss(torch.randn(256, 32), torch.rand(256) + 0.1)  # LEAK
        if self.loss_ema is None:
            self.loss_ema = terminal_loss
        self.loss_ema = 0.95 * self.loss_ema + 0.05 * terminal_loss  # LEAK


agent = Agent()
for iteration in range(1_000_000):
    agent.learn()
    agent.track()
    time.sleep(0.4)
    if iteration % 25 == 0:
        print(f"iteration {iteration}: loss {float(agent.loss_ema):.3f}")
