"""A DDPG agent (Lillicrap et al., 2015) and the replay buffer that the population shares."""

import random
from collections import deque
from typing import TypedDict

import numpy as np
import torch
from torch import nn

from examples.erl_trading.market import ASSETS, FEATURES, Array

DISCOUNT, SOFT = 0.95, 0.01
NETWORKS = ("actor", "actor_target", "critic", "critic_target")
STATE = 2 * ASSETS * FEATURES

Weights = dict[str, dict[str, torch.Tensor]]


class Transition(TypedDict):
    """One day of one agent; states have shape (60, 48, 5)."""

    state: Array
    action: Array
    reward: float
    next_state: Array
    done: bool


class ReplayBuffer:
    """The newest transitions of the whole population, at most `capacity`."""

    def __init__(self, capacity: int) -> None:
        self.buffer: deque[Transition] = deque(maxlen=capacity)

    def __len__(self) -> int:
        return len(self.buffer)

    def sample(self, count: int) -> list[Transition]:
        """`count` random transitions."""
        return [self.buffer[random.randrange(len(self.buffer))] for _ in range(count)]


def summarise(states: Array) -> torch.Tensor:
    """Last day and mean of the window, flat: (batch, 60, 48, 5) -> (batch, 480)."""
    parts = np.concatenate([states[:, -1], states.mean(axis=1)], axis=1)
    return torch.from_numpy(parts.reshape(len(states), STATE))


def _network(inputs: int, outputs: int, last: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, outputs), last)


class DDPGAgent:
    """Actor and critic with their targets and optimizers."""

    def __init__(self) -> None:
        self.actor = _network(STATE, ASSETS, nn.Tanh())
        self.actor_target = _network(STATE, ASSETS, nn.Tanh())
        self.critic = _network(STATE + ASSETS, 1, nn.Identity())
        self.critic_target = _network(STATE + ASSETS, 1, nn.Identity())
        self.actor_target.load_state_dict(self.actor.state_dict())
        self.critic_target.load_state_dict(self.critic.state_dict())
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=2e-3)
        self.losses: deque[float] = deque(maxlen=1000)

    def act(self, state: Array, noise: float) -> Array:
        """Positions for one state, shape (48,), with exploration noise."""
        with torch.no_grad():
            positions: Array = self.actor(summarise(state[None]))[0].numpy()
        noisy = positions + np.random.normal(0, noise, ASSETS).astype(np.float32)
        return np.clip(noisy, -1, 1, out=noisy)

    def learn(self, batch: list[Transition]) -> None:
        """One step of the critic and one of the actor."""
        states = summarise(np.stack([one["state"] for one in batch]))
        following = summarise(np.stack([one["next_state"] for one in batch]))
        actions = torch.from_numpy(np.stack([one["action"] for one in batch]))
        rewards = torch.tensor([[one["reward"]] for one in batch], dtype=torch.float32)
        going_on = torch.tensor([[not one["done"]] for one in batch], dtype=torch.float32)
        with torch.no_grad():
            ahead = self.critic_target(torch.cat([following, self.actor_target(following)], dim=1))
            wanted = rewards + DISCOUNT * going_on * ahead
        critic_loss = nn.functional.mse_loss(self.critic(torch.cat([states, actions], dim=1)), wanted)
        self._descend(self.critic_optimizer, critic_loss)
        actor_loss = -self.critic(torch.cat([states, self.actor(states)], dim=1)).mean()
        self._descend(self.actor_optimizer, actor_loss)
        for network, target in ((self.actor, self.actor_target), (self.critic, self.critic_target)):
            for value, slow in zip(network.parameters(), target.parameters(), strict=True):
                slow.data.lerp_(value.data, SOFT)
        self.losses.append(float(critic_loss.detach()))

    def clone(self) -> "DDPGAgent":
        """A copy with the same weights and fresh optimizers."""
        return self.loaded(self.weights())

    def weights(self) -> Weights:
        """The weights of its networks, by network."""
        return {name: getattr(self, name).state_dict() for name in NETWORKS}

    @classmethod
    def loaded(cls, weights: Weights) -> "DDPGAgent":
        """An agent with these weights and fresh optimizers."""
        agent = cls()
        for name in NETWORKS:
            getattr(agent, name).load_state_dict(weights[name])
        return agent

    def mutate(self, scale: float) -> "DDPGAgent":
        """A clone whose actor is a little different."""
        child = self.clone()
        with torch.no_grad():
            for weight in child.actor.parameters():
                weight.add_(torch.randn_like(weight) * scale * weight.std())
        child.actor_target.load_state_dict(child.actor.state_dict())
        return child

    @staticmethod
    def _descend(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
