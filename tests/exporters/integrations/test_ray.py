"""RLlib and Ray Tune, with a Ray of their own."""

import json
import urllib.request

import pytest
import ray
from ray import tune
from ray.rllib.algorithms.dqn import DQNConfig

from heapwatch.integrations.ray_tune import watched
from heapwatch.integrations.rllib import HeapwatchCallback


@pytest.fixture(scope="module", autouse=True)
def local_ray():
    ray.init(num_cpus=1, include_dashboard=False, configure_logging=False, log_to_driver=False)
    yield
    ray.shutdown()


class Callback(HeapwatchCallback):
    options = {"port": 0}  # noqa: RUF012


def test_an_algorithm_with_its_replay_buffer(exposed):
    config = (
        DQNConfig()
        .environment("CartPole-v1")
        .env_runners(num_env_runners=0)
        .training(
            replay_buffer_config={"type": "EpisodeReplayBuffer", "capacity": 500},
            num_steps_sampled_before_learning_starts=50,
        )
        .reporting(min_sample_timesteps_per_iteration=50, min_time_s_per_iteration=0)
        .callbacks(Callback)
    )
    algorithm = config.build_algo()
    try:
        algorithm.train()
        algorithm.train()
        callback = algorithm.callbacks[0] if isinstance(algorithm.callbacks, list) else algorithm.callbacks
        callback._session.end()
    finally:
        algorithm.stop()
    seen = exposed[-1]
    assert seen.value("trainer_progress_total", unit="epoch") == 2
    assert seen.value("trainer_progress_total", unit="step") >= 100
    assert seen.value("trainer_buffer_items", buffer="replay_buffer") > 0
    assert seen.value("trainer_phase_duration_seconds_count", phase="iteration") >= 2


def test_each_trial_is_watched_in_its_own_process(tmp_path):
    def train(config, watch):
        for _ in range(config["steps"]):
            watch.step()
        with urllib.request.urlopen(f"http://127.0.0.1:{watch.port}/performance_status") as answer:
            status = json.load(answer)
        tune.report({"steps": status["progress"]["step"], "run": status["trainer"]["run"]})

    tuner = tune.Tuner(
        watched(train, port=0),
        param_space={"steps": tune.grid_search([3, 5])},
        run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
    )
    results = tuner.fit()
    assert not results.errors
    assert sorted(result.metrics["steps"] for result in results) == [3, 5]
    assert all(result.metrics["run"] == result.metrics["trial_id"] for result in results)
