"""A convolutional DQN agent (Mnih et al., 2015) with its memory."""

import random
from collections import deque
from collections.abc import MutableSequence
from typing import NamedTuple

import torch
from torch import nn

from examples.fire_dqn.fire import ACTIONS, CHANNELS
from heapwatch.runtime.release import empty_cuda_cache

CAPACITY = 1000
BATCH = 16
DISCOUNT = 0.95
KEPT_HISTORY = 1000
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Transition(NamedTuple):
    """One step; states are tensors of shape (12, 50, 50)."""

    state: torch.Tensor
    action: int
    reward: float
    next_state: torch.Tensor
    done: bool


class ReplayMemory:
    """The newest transitions, at most `CAPACITY`."""

    def __init__(self) -> None:
        self.buffer: deque[Transition] = deque(maxlen=CAPACITY)

    def clear(self) -> None:
        """Forget every transition."""
        self.buffer.clear()

    def push(self, transition: Transition) -> None:
        """Store a transition on the CPU and without the graph that its states were computed with."""
        state, following = transition.state.detach().cpu(), transition.next_state.detach().cpu()
        self.buffer.append(transition._replace(state=state, next_state=following))


def q_network() -> nn.Module:
    """(batch, 12, 50, 50) -> value of each of the 25 actions."""
    return nn.Sequential(
        nn.Conv2d(CHANNELS, 16, 5, stride=3),
        nn.ReLU(),
        nn.Conv2d(16, 16, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 64),
        nn.ReLU(),
        nn.Linear(64, ACTIONS),
    ).to(DEVICE)


class DQNAgent:
    """Deep Q-learning with a target network."""

    def __init__(self) -> None:
        self.network = q_network()
        self.target = q_network()
        self.target.load_state_dict(self.network.state_dict())
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=1e-3)
        self.memory = ReplayMemory()
        self.losses: MutableSequence[float] = deque(maxlen=KEPT_HISTORY)
        self.rewards: MutableSequence[float] = deque(maxlen=KEPT_HISTORY)
        self.exploration = 1.0
        self.updates = 0

    def cleanup_memory(self) -> None:
        """Bound the histories and the memory again, and give the device's cache back."""
        self.losses = deque(self.losses, maxlen=KEPT_HISTORY)
        self.rewards = deque(self.rewards, maxlen=KEPT_HISTORY)
        self.memory.buffer = deque(self.memory.buffer, maxlen=CAPACITY)
        empty_cuda_cache()

    def reset_memory(self) -> None:
        """Forget what was experienced and how it went."""
        self.memory.clear()
        self.losses = deque(maxlen=KEPT_HISTORY)
        self.rewards = deque(maxlen=KEPT_HISTORY)
        self.cleanup_memory()

    def act(self, state: torch.Tensor) -> int:
        """The action for one state of shape (12, 50, 50)."""
        if random.random() < self.exploration:
            return random.randrange(ACTIONS)
        with torch.no_grad():
            return int(self.network(state.to(DEVICE).unsqueeze(0)).argmax())

    def learn(self) -> torch.Tensor | None:
        """One gradient step; returns the loss with its graph, or None while there is too little memory."""
        memory = self.memory.buffer
        if len(memory) < 4 * BATCH:
            return None
        batch = [memory[random.randrange(len(memory))] for _ in range(BATCH)]
        states = torch.stack([one.state.detach().to(DEVICE) for one in batch])
        following = torch.stack([one.next_state.detach().to(DEVICE) for one in batch])
        actions = torch.tensor([[one.action] for one in batch], device=DEVICE)
        rewards = torch.tensor([one.reward for one in batch], device=DEVICE)
        going_on = torch.tensor([not one.done for one in batch], dtype=torch.float32, device=DEVICE)
        with torch.no_grad():
            wanted = rewards + DISCOUNT * going_on * self.target(following).max(dim=1).values
        loss = nn.functional.smooth_l1_loss(self.network(states).gather(1, actions).squeeze(1), wanted)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.losses.append(float(loss.detach()))
        self.updates += 1
        if self.updates % 100 == 0:
            self.target.load_state_dict(self.network.state_dict())
        return loss
