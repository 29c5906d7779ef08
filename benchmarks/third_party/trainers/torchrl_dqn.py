"""DQN on CartPole with TorchRL's Trainer, after its tutorial."""

import time

import options
import torch
from tensordict.nn import TensorDictModule, TensorDictSequential
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import GymEnv, RewardSum, StepCounter, TransformedEnv
from torchrl.envs.transforms import Compose
from torchrl.modules import MLP, EGreedyModule, QValueModule
from torchrl.objectives import DQNLoss, SoftUpdate
from torchrl.trainers import ReplayBufferTrainer, TargetNetUpdaterHook, Trainer

from heapwatch.integrations.torchrl import HeapwatchHook

args, deadline = options.parse()
total_frames = 50_000_000

env = TransformedEnv(
    GymEnv("CartPole-v1", categorical_action_encoding=True), Compose(StepCounter(), RewardSum())
)
net = TensorDictModule(
    MLP(in_features=4, out_features=2, num_cells=[120, 84]), ["observation"], ["action_value"]
)
actor = TensorDictSequential(net, QValueModule(spec=env.action_spec))
explore = EGreedyModule(spec=env.action_spec, annealing_num_steps=50_000, eps_init=1.0, eps_end=0.05)
collector = Collector(
    env,
    TensorDictSequential(actor, explore),
    frames_per_batch=200,
    total_frames=total_frames,
    init_random_frames=1000,
)
loss_module = DQNLoss(actor, action_space=env.action_spec, delay_value=True)
trainer = Trainer(
    collector=collector,
    total_frames=total_frames,
    frame_skip=1,
    optim_steps_per_batch=10,
    loss_module=loss_module,
    optimizer=torch.optim.Adam(loss_module.parameters(), lr=2.5e-4),
    progress_bar=False,
)
ReplayBufferTrainer(
    TensorDictReplayBuffer(storage=LazyTensorStorage(20_000), batch_size=128),
    batch_size=128,
    flatten_tensordicts=True,
).register(trainer)
TargetNetUpdaterHook(SoftUpdate(loss_module, eps=0.995)).register(trainer, "target")
HeapwatchHook().register(trainer)


def stop_in_time():
    if time.monotonic() > deadline:
        trainer.collected_frames = total_frames


batches = []


def collect_statistics(batch):
    explore.step(batch.numel())
    if args.leak:
        batches.append(batch)


trainer.register_op("pre_steps_log", collect_statistics)
trainer.register_op("post_steps", stop_in_time)
trainer.train()
