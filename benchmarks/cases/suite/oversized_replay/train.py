"""DQN on stacked camera frames, with the buffer size that the papers use."""

import time

import gymnasium
import numpy as np
from stable_baselines3 import DQN


class CameraEnv(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    action_space = gymnasium.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._frames(), {}

    def step(self, action):
        self.steps += 1
        time.sleep(0.03)  # the camera
        return self._frames(), float(action == 1), self.steps >= 100, False, {}

    def _frames(self):
        return self.np_random.integers(0, 255, (4, 84, 84), np.uint8)


model = DQN(  # LEAK
    "MlpPolicy",
    CameraEnv(),
    buffer_size=500_000,
    learning_starts=500,
    train_freq=200,
    batch_size=16,
    policy_kwargs={"net_arch": [32]},
)
model.learn(total_timesteps=10_000_000)  # LEAK
