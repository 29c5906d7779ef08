import pytest

pytestmark = pytest.mark.slow


def test_a_trainer_with_its_replay_buffer(exposed, size_of):
    # not at the top: each worker collects all tests, and these take seconds
    import torch
    from tensordict.nn import TensorDictModule
    from torchrl.collectors import Collector
    from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
    from torchrl.envs import GymEnv
    from torchrl.modules import QValueActor
    from torchrl.objectives import DQNLoss
    from torchrl.trainers import ReplayBufferTrainer, Trainer

    from heapwatch.integrations.torchrl import HeapwatchHook

    device = "cuda" if torch.cuda.is_available() else "cpu"
    environment = GymEnv("CartPole-v1", categorical_action_encoding=True, device=device)
    actor = QValueActor(
        TensorDictModule(
            torch.nn.Linear(4, 2, device=device), in_keys=["observation"], out_keys=["action_value"]
        ),
        spec=environment.action_spec,
    )
    collector = Collector(environment, actor, frames_per_batch=16, total_frames=64)
    loss = DQNLoss(actor, action_space=environment.action_spec, delay_value=False)
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(100, device=device), batch_size=8)
    trainer = Trainer(
        collector=collector, total_frames=64, frame_skip=1, optim_steps_per_batch=1, loss_module=loss,
        optimizer=torch.optim.Adam(loss.parameters()), progress_bar=False,
    )  # fmt: skip
    ReplayBufferTrainer(buffer, batch_size=8).register(trainer)
    HeapwatchHook(port=0).register(trainer)
    trainer.train()
    seen = exposed[-1]
    assert seen.value("trainer_progress_total", unit="step") == 64
    assert seen.value("trainer_buffer_items", buffer="replay_buffer") == 64
    assert seen.value("trainer_buffer_capacity_items", buffer="replay_buffer") == 100
    assert size_of(seen, "loss_module.state_dict") > 0
    assert set(seen.by("trainer_phase_end_resident_memory_bytes", "phase")) == {"collect", "optimise"}
