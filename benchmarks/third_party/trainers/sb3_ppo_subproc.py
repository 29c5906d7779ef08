"""PPO on BipedalWalker in four worker processes, after the Stable-Baselines3 documentation."""

import time

import gymnasium as gym
import numpy as np
import options
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import ConvertCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv

from heapwatch.integrations.stable_baselines3 import HeapwatchCallback


class TrajectoryRecorder(gym.Wrapper):
    """Keeps the last 32 observations of each step, as a recurrent policy sees them, and never forgets one."""

    def __init__(self, env):
        super().__init__(env)
        self.window = np.zeros((32, 24), dtype=np.float32)
        self.trajectory = []

    def step(self, action):
        result = self.env.step(action)
        self.window = np.vstack([self.window[1:], result[0]])
        self.trajectory.append((action, self.window, *result[1:]))
        return result


def main():
    args, deadline = options.parse()
    in_time = ConvertCallback(lambda *_: time.monotonic() < deadline)

    vec_env = make_vec_env(
        "BipedalWalker-v3",
        n_envs=4,
        vec_env_cls=SubprocVecEnv,
        wrapper_class=TrajectoryRecorder if args.leak else None,
    )
    model = PPO("MlpPolicy", vec_env, n_steps=512, batch_size=64, gae_lambda=0.95, gamma=0.999, verbose=1)
    model.learn(100_000_000, callback=[HeapwatchCallback(), in_time], log_interval=10)
    vec_env.close()


if __name__ == "__main__":
    main()
