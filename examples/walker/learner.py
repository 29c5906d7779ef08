"""A Q-network that all robots share, its replay buffer and its gradient steps."""

import random
from collections import deque
from collections.abc import MutableSequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from examples.walker.robot import ACTIONS, OBSERVATIONS

REPLAY_CAPACITY = 10_000
BATCH = 64
DISCOUNT = 0.98


class Experience(NamedTuple):
    """One transition of one robot; observations have shape (14,)."""

    observation: NDArray[np.float32]
    action: int
    reward: float
    next_observation: NDArray[np.float32]
    dead: bool


def q_network() -> nn.Module:
    """Observation (batch, 14) -> value of each of the 9 actions (batch, 9)."""
    return nn.Sequential(
        nn.Linear(OBSERVATIONS, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, ACTIONS)
    )


class Learner:
    """Deep Q-learning with a target network (Mnih et al., 2015)."""

    def __init__(self, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.policy = q_network()
        self.target = q_network()
        self.target.load_state_dict(self.policy.state_dict())
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-3)
        self.replay: MutableSequence[Experience] = deque(maxlen=REPLAY_CAPACITY)
        self.exploration = 1.0
        self.losses: deque[float] = deque(maxlen=1000)

    def act(self, observations: NDArray[np.float32]) -> list[int]:
        """Choose an action for each row of `observations`, shape (robots, 14)."""
        with torch.no_grad():
            greedy = self.policy(torch.from_numpy(observations)).argmax(dim=1).tolist()
        return [
            random.randrange(ACTIONS) if random.random() < self.exploration else int(action)
            for action in greedy
        ]

    def learn(self) -> None:
        """One gradient step on a random batch, once there is enough experience."""
        if len(self.replay) < 10 * BATCH:
            return
        batch = [self.replay[random.randrange(len(self.replay))] for _ in range(BATCH)]
        observations = torch.from_numpy(np.stack([one.observation for one in batch]))
        following = torch.from_numpy(np.stack([one.next_observation for one in batch]))
        actions = torch.tensor([[one.action] for one in batch])
        rewards = torch.tensor([one.reward for one in batch])
        alive = torch.tensor([not one.dead for one in batch], dtype=torch.float32)
        with torch.no_grad():
            wanted = rewards + DISCOUNT * alive * self.target(following).max(dim=1).values
        values = self.policy(observations).gather(1, actions).squeeze(1)
        loss = nn.functional.smooth_l1_loss(values, wanted)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.losses.append(float(loss.detach()))

    def end_generation(self) -> None:
        """Move the target network up to the policy, and explore a little less."""
        self.target.load_state_dict(self.policy.state_dict())
        self.exploration = max(0.1, self.exploration * 0.9)
