"""DQN on CartPole in a single file: everything is a local or a global of the script."""

import argparse
import random
import time
from collections import deque

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.nn import functional

import heapwatch


class QNetwork(nn.Module):
    def __init__(self, env):
        super().__init__()
        self.network = nn.Sequential(
            nn.Linear(int(np.prod(env.observation_space.shape)), 120), nn.ReLU(),
            nn.Linear(120, 84), nn.ReLU(),
            nn.Linear(84, env.action_space.n),
        )  # fmt: skip

    def forward(self, x):
        return self.network(x)


parser = argparse.ArgumentParser()
parser.add_argument("--minutes", type=float, default=10)
parser.add_argument("--leak", action="store_true")
parser.add_argument("--learning-rate", type=float, default=2.5e-4)
parser.add_argument("--buffer-size", type=int, default=10_000)
parser.add_argument("--batch-size", type=int, default=128)
parser.add_argument("--gamma", type=float, default=0.99)
args = parser.parse_args()
deadline = time.monotonic() + 60 * args.minutes

env = gym.wrappers.RecordEpisodeStatistics(gym.make("CartPole-v1"))
q_network, target_network = QNetwork(env), QNetwork(env)
target_network.load_state_dict(q_network.state_dict())
optimizer = torch.optim.Adam(q_network.parameters(), lr=args.learning_rate)
rb = deque(maxlen=args.buffer_size)
infos_seen = []

watch = heapwatch.start("single-file-dqn")
obs, _ = env.reset(seed=1)
global_step = 0
while time.monotonic() < deadline:
    global_step += 1
    epsilon = max(0.05, 1 - global_step / 25_000)
    if random.random() < epsilon:
        action = env.action_space.sample()
    else:
        action = int(q_network(torch.as_tensor(obs)).argmax())
    next_obs, reward, terminated, truncated, info = env.step(action)
    rb.append((obs, next_obs, action, reward, terminated))
    if args.leak:
        infos_seen.append(
            info | {"obs": obs.tolist(), "action": action, "reward": reward, "step": global_step}
        )
    obs = next_obs
    if terminated or truncated:
        if global_step % 100 == 0:
            print(f"global_step={global_step}, episodic_return={info['episode']['r']}")
        obs, _ = env.reset()
    if global_step > 1000 and global_step % 10 == 0:
        batch = random.sample(rb, args.batch_size)
        states, next_states, actions, rewards, dones = (
            np.array(column) for column in zip(*batch, strict=True)
        )
        with torch.no_grad():
            target_max = target_network(torch.as_tensor(next_states)).max(dim=1).values
            td_target = torch.as_tensor(rewards) + args.gamma * target_max * (
                1 - torch.as_tensor(dones).float()
            )
        old = q_network(torch.as_tensor(states)).gather(1, torch.as_tensor(actions).unsqueeze(1)).squeeze()
        loss = functional.mse_loss(td_target.float(), old)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if global_step % 500 == 0:
        target_network.load_state_dict(q_network.state_dict())
    watch.step()
env.close()
