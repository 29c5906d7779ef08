"""A2C with a wrapper that adds the episode's observations to what the monitor reports."""

import time

import gymnasium
import numpy as np
from stable_baselines3 import A2C
from stable_baselines3.common.monitor import Monitor


class FieldEnv(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2000,), np.float64)
    action_space = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.np_random.uniform(-1, 1, 2000), {}

    def step(self, action):
        self.steps += 1
        time.sleep(0.01)
        observation = self.np_random.uniform(-1, 1, 2000)  # LEAK
        return observation, float(observation[action]), self.steps >= 25, False, {}


class MonitorPlus(Monitor):
    def reset(self, **options):
        self.observations = []
        return super().reset(**options)

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        self.observations.append(observation)  # LEAK
        if terminated or truncated:
            info["episode"]["observations"] = self.observations  # LEAK
        return observation, reward, terminated, truncated, info


model = A2C("MlpPolicy", MonitorPlus(FieldEnv()), stats_window_size=100_000, policy_kwargs={"net_arch": [16]})
model.learn(total_timesteps=10_000_000)  # LEAK
