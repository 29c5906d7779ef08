"""Evaluates a policy on CartPole and records what it looks like."""

import os
import time

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

import gymnasium
from gymnasium.wrappers import RenderCollection

env = RenderCollection(
    gymnasium.make("CartPole-v1", render_mode="rgb_array"), pop_frames=False, reset_clean=False
)
observation, _ = env.reset(seed=0)
episodes = 0
for step in range(1_000_000):
    action = int(observation[2] > 0)
    observation, reward, terminated, truncated, _ = env.step(action)  # LEAK
    time.sleep(0.4)
    if terminated or truncated:
        episodes += 1
        print(f"step {step}: {episodes} episodes, {len(env.render())} frames")
        observation, _ = env.reset()
