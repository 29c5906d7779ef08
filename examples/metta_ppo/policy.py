"""The recurrent policy, its preallocated experience, and PPO's update (Schulman et al., 2017)."""

from typing import NamedTuple

import torch
from torch import nn

from examples.metta_ppo.environment import ACTIONS, OBSERVATION

HIDDEN = 64
HORIZON = 64
CLIP, DISCOUNT, LAMBDA, ENTROPY = 0.2, 0.97, 0.95, 0.01
EPOCHS = 2

State = tuple[torch.Tensor, torch.Tensor]


class Policy(nn.Module):
    """Observation -> LSTM -> action logits and value."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(OBSERVATION, HIDDEN), nn.ReLU())
        self.lstm = nn.LSTMCell(HIDDEN, HIDDEN)
        self.actor = nn.Linear(HIDDEN, ACTIONS)
        self.critic = nn.Linear(HIDDEN, 1)

    def forward(self, observations: torch.Tensor, state: State) -> tuple[torch.Tensor, torch.Tensor, State]:
        """(batch, 128) and an LSTM state -> logits (batch, 4), values (batch,), the next state."""
        hidden, cell = self.lstm(self.encode(observations), state)
        return self.actor(hidden), self.critic(hidden).squeeze(-1), (hidden, cell)


class Experience:
    """Preallocated tensors for `HORIZON` steps of every environment."""

    def __init__(self, environments: int) -> None:
        shape = (HORIZON, environments)
        self.obs = torch.zeros(*shape, OBSERVATION)
        self.actions = torch.zeros(shape, dtype=torch.int64)
        self.rewards = torch.zeros(shape)
        self.dones = torch.zeros(shape)
        self.values = torch.zeros(shape)
        self.logprobs = torch.zeros(shape)
        self.lstm_h = torch.zeros(*shape, HIDDEN)
        self.lstm_c = torch.zeros(*shape, HIDDEN)

    def advantages(self, last_value: torch.Tensor) -> torch.Tensor:
        """Generalised advantage estimates (Schulman et al., 2016), shape (HORIZON, environments)."""
        result = torch.zeros_like(self.rewards)
        following, running = last_value, torch.zeros_like(last_value)
        for step in reversed(range(HORIZON)):
            going_on = 1 - self.dones[step]
            delta = self.rewards[step] + DISCOUNT * following * going_on - self.values[step]
            running = delta + DISCOUNT * LAMBDA * going_on * running
            result[step] = running
            following = self.values[step]
        return result


class Losses(NamedTuple):
    """Means over an update."""

    policy: float
    value: float
    entropy: float


def update(
    policy: Policy, optimizer: torch.optim.Optimizer, experience: Experience, last_value: torch.Tensor
) -> Losses:
    """PPO's clipped update; each step starts from the LSTM state that it was taken in."""
    advantages = experience.advantages(last_value)
    returns = (advantages + experience.values).flatten()
    advantages = ((advantages - advantages.mean()) / (advantages.std() + 1e-8)).flatten()
    flat = [
        tensor.flatten(0, 1)
        for tensor in (
            experience.obs,
            experience.actions,
            experience.logprobs,
            experience.lstm_h,
            experience.lstm_c,
        )
    ]
    losses = Losses(0.0, 0.0, 0.0)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(returns)).chunk(4):
            observations, actions, logprobs, hidden, cell = (tensor[rows] for tensor in flat)
            logits, values, _ = policy(observations, (hidden, cell))
            chosen = torch.distributions.Categorical(logits=logits)
            ratio = (chosen.log_prob(actions) - logprobs).exp()  # type: ignore[no-untyped-call]
            gain = advantages[rows]
            policy_loss = -torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
            value_loss = nn.functional.mse_loss(values, returns[rows])
            entropy = chosen.entropy().mean()  # type: ignore[no-untyped-call]
            optimizer.zero_grad()
            (policy_loss + 0.5 * value_loss - ENTROPY * entropy).backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()
            losses = Losses(float(policy_loss.detach()), float(value_loss.detach()), float(entropy.detach()))
    return losses
