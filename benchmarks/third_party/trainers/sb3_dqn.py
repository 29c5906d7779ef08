"""DQN on LunarLander, after the Stable-Baselines3 documentation."""

import time

import options
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, ConvertCallback

from heapwatch.integrations.stable_baselines3 import HeapwatchCallback


class TransitionLog(BaseCallback):
    """Keeps every observation and info "for the analysis afterwards"."""

    def __init__(self):
        super().__init__()
        self.transitions = []

    def _on_step(self):
        self.transitions.append((self.locals["new_obs"].copy(), self.locals["infos"][0]))
        return True


args, deadline = options.parse()
in_time = ConvertCallback(lambda *_: time.monotonic() < deadline)

model = DQN(
    "MlpPolicy", "LunarLander-v3", learning_rate=6.3e-4, buffer_size=50_000, learning_starts=1000,
    batch_size=128, train_freq=4, target_update_interval=250, exploration_fraction=0.12, verbose=1,
)  # fmt: skip
callbacks = [HeapwatchCallback(), in_time]
if args.leak:
    callbacks.append(TransitionLog())
model.learn(10_000_000, callback=CallbackList(callbacks), log_interval=100)
