"""Evolves ninety robots, each of which learns with its own network, optimizer and replay memory."""

import random
import time
from collections import deque

import numpy as np
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))
        self.norm = nn.LayerNorm(size)

    def forward(self, state):
        weights = torch.softmax(self.query(state) * self.key(state), -1)
        return self.norm(state + weights * self.value(state))


class Network(nn.Module):
    def __init__(self, size=100, actions=15):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(size, 32), nn.ReLU(), Attention(32), nn.Dropout(0.1))
        self.value = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
        self.advantage = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, actions))

    def forward(self, state):
        features = self.encoder(state)
        return self.value(features) + self.advantage(features)


class Memory:
    def __init__(self):
        self.buffer = []
        self.priorities = deque(maxlen=500)

    def push(self, state, action, reward, following):
        self.buffer.append((state, action, reward, following))  # LEAK
        self.priorities.append(1.0)


class Robot:
    def __init__(self, index):
        self.name, self.index = f"robot {index}", index
        self.network, self.target = Network(), Network()
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=1e-3)
        self.memory = Memory()
        self.action_history, self.rewards = deque(maxlen=20), deque(maxlen=50)

    def learn(self):
        batch = random.sample(list(self.memory.buffer)[-60:], 16)
        states = torch.from_numpy(np.stack([state for state, *_ in batch]).astype(np.float32))
        loss = (self.network(states) - self.target(states)).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


class World:
    def __init__(self, robots=90):
        self.agents = [Robot(index) for index in range(robots)]
        self.rng = np.random.default_rng(0)

    def step(self):
        for agent in self.agents:
            state, following = self.rng.normal(size=(2, 100))  # LEAK
            agent.memory.push(state.copy(), agent.index % 15, float(state[0]), following.copy())  # LEAK


env = World()
for step in range(1_000_000):
    env.step()
    if step > 20 and step % 10 == 0:
        loss = random.choice(env.agents).learn()
    time.sleep(0.15)
