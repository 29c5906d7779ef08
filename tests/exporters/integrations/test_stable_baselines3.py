from stable_baselines3 import DQN, PPO

from heapwatch.integrations.stable_baselines3 import HeapwatchCallback


def test_an_off_policy_model_with_its_replay_buffer(exposed):
    model = DQN("MlpPolicy", "CartPole-v1", buffer_size=500, learning_starts=50, seed=0)
    model.learn(200, callback=HeapwatchCallback(port=0))
    seen = exposed[-1]
    assert seen.value("trainer_progress_total", unit="step") == 200
    assert seen.value("trainer_progress_total", unit="episode") >= 1
    assert seen.value("trainer_buffer_items", buffer="replay_buffer") == 200
    assert seen.value("trainer_buffer_capacity_items", buffer="replay_buffer") == 500
    assert seen.value("trainer_object_size_bytes", object="policy.state_dict") > 10_000
    assert set(seen.by("trainer_phase_end_resident_memory_bytes", "phase")) == {"rollout", "train"}


def test_learning_on_counts_the_new_steps_only(exposed):
    model = DQN("MlpPolicy", "CartPole-v1", buffer_size=500, learning_starts=1000, seed=0)
    callback = HeapwatchCallback(port=0)
    model.learn(40, callback=callback)
    model.learn(60, callback=callback, reset_num_timesteps=False)
    assert [seen.value("trainer_progress_total", unit="step") for seen in exposed] == [40, 60]


def test_an_on_policy_model_with_its_rollout_buffer(exposed):
    model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=32, n_epochs=1, seed=0)
    model.learn(128, callback=HeapwatchCallback(port=0))
    assert exposed[-1].value("trainer_buffer_capacity_items", buffer="rollout_buffer") == 64
