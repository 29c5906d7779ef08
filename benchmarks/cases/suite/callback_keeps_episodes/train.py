"""Samples with an RLlib environment runner and watches the steps with a callback."""

import logging
import time
import warnings

import gymnasium
import numpy as np
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

warnings.simplefilter("ignore")
logging.getLogger("ray").setLevel(logging.ERROR)


class ArmEnv(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (8,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, config=None) -> None:
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.steps += 1
        time.sleep(0.03)
        info = {"contacts": self.np_random.random((60, 100))}  # LEAK
        return self.observation_space.sample(), float(action), self.steps >= 20, False, info


class MonitorInfos(RLlibCallback):
    def __init__(self) -> None:
        self.history = {}

    def on_episode_step(self, *, episode, **_):
        contacts = episode.get_infos(-1).get("contacts")
        if contacts is not None:
            self.history.setdefault(episode.id_, []).append(contacts)  # LEAK

    def on_episode_end(self, *, episode, **_):
        print(f"{episode.id_}: {len(self.history[episode.id_])} steps")


config = PPOConfig().environment(ArmEnv).callbacks(MonitorInfos)
runner = SingleAgentEnvRunner(config=config.env_runners(num_env_runners=0))
while True:
    runner.sample(num_timesteps=20)  # LEAK
    runner.get_metrics()
