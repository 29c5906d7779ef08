import numpy as np
import pytest
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

from heapwatch.integrations.stable_baselines3 import HeapwatchCallback

pytestmark = pytest.mark.slow


def begun(model, dones):
    """A callback of a model that is set up to learn; its next step ends these episodes."""
    callback = HeapwatchCallback(port=0)
    callback.init_callback(model)
    callback.on_training_start({"dones": dones}, {})
    return callback


def test_an_off_policy_model_with_its_replay_buffer(exposed, size_of):
    model = DQN("MlpPolicy", "CartPole-v1", buffer_size=500, learning_starts=50, seed=0)
    model.learn(200, callback=HeapwatchCallback(port=0))
    seen = exposed[-1]
    assert seen.value("trainer_progress_total", unit="step") == 200
    assert seen.value("trainer_progress_total", unit="episode") == model._episode_num > 1
    assert seen.value("trainer_buffer_items", buffer="replay_buffer") == 200
    assert seen.value("trainer_buffer_capacity_items", buffer="replay_buffer") == 500
    assert size_of(seen, "policy.state_dict") > 10_000
    assert set(seen.by("trainer_phase_end_resident_memory_bytes", "phase")) == {"rollout", "train"}


def test_episodes_of_all_environments_are_counted(exposed):
    model = PPO(
        "MlpPolicy", make_vec_env("CartPole-v1", n_envs=3), n_steps=64, batch_size=32, n_epochs=1, seed=0
    )
    ended = []

    class Count(BaseCallback):
        def _on_step(self):
            ended.append(int(sum(self.locals["dones"])))
            return True

    model.learn(192, callback=[HeapwatchCallback(port=0), Count()])
    assert exposed[-1].value("trainer_progress_total", unit="episode") == sum(ended) > 0
    assert exposed[-1].value("trainer_progress_total", unit="step") == 192


def test_phases_that_come_faster_than_memory_should_be_read_are_measured_in_part(exposed, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("heapwatch.integrations.stable_baselines3.perf_counter", lambda: now[0])
    model = DQN("MlpPolicy", "CartPole-v1", buffer_size=500, learning_starts=1000, train_freq=4, seed=0)
    model.learn(200, callback=HeapwatchCallback(port=0))  # 50 rollouts in no time
    assert exposed[-1].value("trainer_phase_duration_seconds_count", phase="rollout") == 1


@pytest.mark.parametrize(
    "dones",
    [np.array([True, False, True]), [1, 0, 1], np.array([3, 0, 256])],
    ids=["booleans", "list", "numbers"],
)
def test_episodes_are_counted_whatever_the_environment_returns(exposed, dones):
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, seed=0)
    model._setup_learn(10)
    callback = begun(model, dones)
    callback._on_step()
    callback.locals = {"dones": type(dones)([False]) if isinstance(dones, list) else np.zeros_like(dones)}
    callback._on_step()
    callback.on_training_end()
    assert exposed[-1].value("trainer_progress_total", unit="episode") == 2
