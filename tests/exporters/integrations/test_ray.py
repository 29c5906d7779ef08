"""RLlib and actors, with a Ray of their own.

Ray is imported by the tests, not at the top: each worker collects all tests, and the import takes seconds.
"""

import json
import os
import re
import threading
import urllib.request

import pytest

from heapwatch.integrations import ray as actors
from tests.support.waiting import wait_for

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def local_ray(tmp_path_factory):
    import ray

    folder = tmp_path_factory.mktemp("targets of actors")
    ray.init(
        address="local",  # a cluster of this machine, or what one has left behind, is not asked
        num_cpus=1,
        include_dashboard=False,
        configure_logging=False,
        log_to_driver=False,
        object_store_memory=100_000_000,
        runtime_env={
            "worker_process_setup_hook": "heapwatch.integrations.ray.watch_actors",
            "env_vars": {
                "HEAPWATCH_TARGETS_DIR": str(folder),
                "HEAPWATCH_TRAINER_PORT": "0",
                "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            },
        },
    )
    yield folder
    ray.shutdown()


def series_of_actors(folder):
    """The exposition of each watched actor that answers."""
    found = []
    for file in folder.glob("*.json"):
        address = json.loads(file.read_text())[0]["targets"][0]
        try:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
                found.append(answer.read().decode())
        except OSError:
            continue
    return found


def test_an_actor_is_watched_under_the_name_of_its_class(local_ray):
    import ray

    @ray.remote(num_cpus=0.1)
    class Collector:
        pass

    collector = Collector.remote()
    job = ray.get_runtime_context().get_job_id()
    labels = rf'framework="ray",rank="",run="{job}",started="[^"]+",title="[^"]+",trainer="Collector"'
    name = rf'trainer_info{{{labels},world_size=""}} 1.0'
    wait_for(lambda: [text for text in series_of_actors(local_ray) if re.search(name, text)])

    ray.kill(collector)


def test_an_actor_continues_where_the_watch_cannot_start(monkeypatch, caplog):
    def fail():
        raise ImportError("another Ray")

    monkeypatch.setattr(actors, "_actor_class", fail)
    before = threading.active_count()
    actors.watch_actors()
    wait_for(lambda: "not watched: ImportError: another Ray, raised at test_ray.py" in caplog.text)
    wait_for(lambda: threading.active_count() <= before)


def test_an_algorithm_with_its_replay_buffer(exposed):
    from ray.rllib.algorithms.dqn import DQNConfig

    from heapwatch.integrations.rllib import HeapwatchCallback

    class Callback(HeapwatchCallback):
        options = {"port": 0}  # noqa: RUF012

    config = (
        DQNConfig()
        .environment("CartPole-v1")
        .env_runners(num_env_runners=0)
        .training(
            replay_buffer_config={"type": "EpisodeReplayBuffer", "capacity": 500},
            num_steps_sampled_before_learning_starts=10_000,  # a step of learning takes long
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
