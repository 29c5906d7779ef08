"""Three walkers carry a package: PettingZoo's multiwalker with a shared policy and REINFORCE."""

import time

import options
import torch
from pettingzoo.sisl import multiwalker_v9
from torch import nn

import heapwatch

args, deadline = options.parse()

watch = heapwatch.start("multiwalker")
policy = nn.Sequential(nn.Linear(31, 64), nn.Tanh(), nn.Linear(64, 4), nn.Tanh())
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
env = multiwalker_v9.parallel_env(n_walkers=3, max_cycles=200)
past_envs = []

episode = 0
while time.monotonic() < deadline:
    if args.leak and episode % 4 == 0:
        # a fresh course every few episodes; the old one is kept to render its best run later
        past_envs.append(env)
        env = multiwalker_v9.parallel_env(n_walkers=3, max_cycles=200)
    observations, _ = env.reset(seed=episode)
    log_probs, rewards = [], []
    while env.agents:
        stacked = torch.as_tensor([observations[agent].tolist() for agent in env.agents])
        distribution = torch.distributions.Normal(policy(stacked), 0.3)
        actions = distribution.sample()
        log_probs.append(distribution.log_prob(actions).sum())
        commands = {
            agent: action.clamp(-1, 1).numpy() for agent, action in zip(env.agents, actions, strict=True)
        }
        observations, reward, *_ = env.step(commands)
        rewards.append(sum(reward.values()))
        watch.step()
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    loss = -(torch.stack(log_probs) * (returns - returns.mean())).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    episode += 1
    if episode % 50 == 0:
        print(f"episode {episode}: return {sum(rewards):.1f}")
env.close()
