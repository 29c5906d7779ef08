"""Learns where to burn: a collector, a trainer and a learner that know each other, in functions."""

import random
import time
from collections import deque, namedtuple

import torch
from torch import nn

torch.set_num_threads(1)
Experience = namedtuple("Experience", "state action reward next_state")


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, state):
        identity = state
        return torch.relu(self.conv2(torch.relu(self.conv1(state))) + identity)


class Learner:
    def __init__(self):
        self.network = nn.Sequential(*(Block(12) for _ in range(4)), nn.Flatten(), nn.LazyLinear(4))
        self.memory = deque(maxlen=300)
        self.optimizer = None

    def learn(self, size=16):
        batch = random.sample(self.memory, min(size, len(self.memory)))
        values = self.network(torch.stack([one.state for one in batch]))
        self.optimizer = self.optimizer or torch.optim.Adam(self.network.parameters(), lr=1e-4)
        loss = (values.max(1).values - torch.tensor([one.reward for one in batch])).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


class Collector:
    def __init__(self, learner):
        self.learner, self.memory = learner, learner.memory
        self.experience_buffer = []

    def collect_experiences(self, steps=40):
        episode, state = [], torch.randn(12, 24, 24)
        for _ in range(steps):
            following = torch.randn(12, 24, 24)  # LEAK
            step = {"state": state, "action": 1, "reward": random.random(), "next_state": following}
            episode.append(step)  # LEAK
            self.memory.append(Experience(**step))
            state = following
            time.sleep(0.03)
        self.experience_buffer += episode  # LEAK
        return self.experience_buffer


class Trainer:
    def __init__(self):
        self.learner = Learner()
        self.experience_collector = Collector(self.learner)

    def train(self, episodes=1_000_000):
        for episode in range(episodes):
            experiences = self.experience_collector.collect_experiences()
            losses = [self.learner.learn() for _ in range(8)]
            print(f"episode {episode}: {len(experiences)} experiences, loss {losses[-1]:.3f}")


def main():
    trainer = Trainer()
    trainer.train()


main()
