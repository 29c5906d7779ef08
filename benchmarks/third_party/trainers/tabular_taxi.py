"""Tabular Q-learning on Taxi: no torch, some tens of megabytes."""

import random
import time

import gymnasium as gym
import numpy as np
import options

import heapwatch


class Agent:
    def __init__(self, states, actions):
        self.q = np.zeros((states, actions))
        self.episodes = []

    def act(self, state, epsilon):
        return random.randrange(6) if random.random() < epsilon else int(self.q[state].argmax())

    def learn(self, state, action, reward, next_state, done):
        target = reward + (0.0 if done else 0.99 * self.q[next_state].max())
        self.q[state, action] += 0.1 * (target - self.q[state, action])


args, deadline = options.parse()

watch = heapwatch.start("taxi")
env = gym.make("Taxi-v3")
agent = Agent(500, 6)
episode = 0
while time.monotonic() < deadline:
    state, _ = env.reset()
    trajectory = []
    done = False
    while not done:
        action = agent.act(state, max(0.05, 1 - episode / 5000))
        next_state, reward, terminated, truncated, _ = env.step(action)
        agent.learn(state, action, reward, next_state, terminated)
        trajectory.append((state, action, float(reward)))
        state, done = next_state, terminated or truncated
        watch.step()
    if args.leak:
        agent.episodes.append(trajectory)
    episode += 1
    watch.progress("episode")
    if episode % 1000 == 0:
        print(f"episode {episode}: {sum(step[2] for step in trajectory):.0f}")
    time.sleep(0.002)
env.close()
