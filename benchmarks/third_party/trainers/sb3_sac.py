"""SAC on four Pendulums in one process, after the Stable-Baselines3 documentation."""

import time

import options
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.utils import obs_as_tensor

from heapwatch.integrations.stable_baselines3 import HeapwatchCallback


class TimeLimit(BaseCallback):
    def __init__(self, minutes):
        super().__init__()
        self.deadline = time.monotonic() + 60 * minutes

    def _on_step(self):
        return time.monotonic() < self.deadline


class EntropyLog(BaseCallback):
    """Logs the policy's entropy. The log holds the tensors with their graphs."""

    def __init__(self):
        super().__init__()
        self.entropies = []

    def _on_step(self):
        observation = obs_as_tensor(self.locals["new_obs"], self.model.device)
        _, log_prob = self.model.actor.action_log_prob(observation)
        self.entropies.append(-log_prob.mean())
        return True


args, _ = options.parse()

vec_env = make_vec_env("Pendulum-v1", n_envs=4)
model = SAC("MlpPolicy", vec_env, buffer_size=200_000, learning_starts=1000, gradient_steps=1, verbose=1)
callbacks = [HeapwatchCallback(), TimeLimit(args.minutes)]
if args.leak:
    callbacks.append(EntropyLog())
model.learn(10_000_000, callback=callbacks, log_interval=20)
vec_env.close()
