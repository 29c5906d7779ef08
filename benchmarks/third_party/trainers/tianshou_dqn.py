"""DQN on CartPole with Tianshou's procedural API, after its quick start."""

import copy
import time

import gymnasium as gym
import options
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

import heapwatch

args, deadline = options.parse()

env = gym.make("CartPole-v1")
train_envs = DummyVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(8)])
test_envs = DummyVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(4)])
net = Net(
    state_shape=env.observation_space.shape, action_shape=env.action_space.n, hidden_sizes=[256, 256, 256]
)
policy = DiscreteQLearningPolicy(
    model=net, action_space=env.action_space, observation_space=env.observation_space, eps_training=0.1
)
algorithm = DQN(
    policy=policy,
    optim=AdamOptimizerFactory(lr=1e-3),
    gamma=0.9,
    n_step_return_horizon=3,
    target_update_freq=320,
)
train_collector = Collector(algorithm, train_envs, VectorReplayBuffer(20_000, 8), exploration_noise=True)
test_collector = Collector(algorithm, test_envs)

watch = heapwatch.start("tianshou-dqn")
snapshots = []


def before_training_step(epoch, env_step):
    if args.leak and env_step % 400 == 0:
        snapshots.append(copy.deepcopy(algorithm.state_dict()))
    watch.step()


algorithm.run_training(
    OffPolicyTrainerParams(
        training_collector=train_collector,
        test_collector=test_collector,
        max_epochs=1_000_000,
        epoch_num_steps=400,
        collection_step_num_env_steps=80,
        test_step_num_episodes=4,
        batch_size=64,
        update_step_num_gradient_steps_per_sample=0.1,
        training_fn=before_training_step,
        stop_fn=lambda score: time.monotonic() > deadline,
        verbose=False,
        show_progress=False,
    )
)
