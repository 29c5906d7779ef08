"""RLlib's PPO on StatelessCartPole, an environment of its shipped examples."""

import time

import options
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.examples.envs.classes.stateless_cartpole import StatelessCartPole

from heapwatch.integrations.rllib import HeapwatchCallback


class RecordingCartPole(StatelessCartPole):
    """Records its episodes; nobody reads or clears the records."""

    def __init__(self, config=None):
        super().__init__(config)
        self.episodes = []

    def reset(self, **kwargs):
        self.episodes.append([])
        return super().reset(**kwargs)

    def step(self, action):
        result = super().step(action)
        self.episodes[-1].append(result)
        return result


if __name__ == "__main__":
    args, deadline = options.parse()

    ray.init(num_cpus=2, include_dashboard=False)
    config = (
        PPOConfig()
        .environment(RecordingCartPole if args.leak else StatelessCartPole)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=4)
        .training(train_batch_size=2000, minibatch_size=128, num_epochs=4)
        .callbacks(HeapwatchCallback)
    )
    algorithm = config.build_algo()
    while time.monotonic() < deadline:
        result = algorithm.train()
        print(result["training_iteration"], result["env_runners"].get("episode_return_mean"))
    algorithm.stop()
    ray.shutdown()
