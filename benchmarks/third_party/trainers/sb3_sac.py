"""SAC on four Pendulums in one process, after the Stable-Baselines3 documentation."""

import time

import options
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import BaseCallback, ConvertCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.utils import obs_as_tensor

from heapwatch.integrations.stable_baselines3 import HeapwatchCallback


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


args, deadline = options.parse()
in_time = ConvertCallback(lambda *_: time.monotonic() < deadline)

vec_env = make_vec_env("Pendulum-v1", n_envs=4)
model = SAC("MlpPolicy", vec_env, buffer_size=200_000, learning_starts=1000, gradient_steps=1, verbose=1)
callbacks = [HeapwatchCallback(), in_time]
if args.leak:
    callbacks.append(EntropyLog())
model.learn(10_000_000, callback=callbacks, log_interval=20)
vec_env.close()
