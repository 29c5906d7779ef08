from functools import partial

import gymnasium
import pytest

from heapwatch.integrations.gymnasium import HeapwatchVectorWrapper, HeapwatchWrapper

WRAPPED = partial(HeapwatchWrapper, port=0)


def test_the_bodies_of_a_box2d_world_that_is_remade_at_every_reset(exposed):
    env = HeapwatchWrapper(gymnasium.make("BipedalWalker-v3", max_episode_steps=20), port=0)
    env.reset(seed=0)
    for _ in range(2):
        ended = False
        while not ended:
            _, _, terminated, truncated, _ = env.step([1.0, 1.0, 1.0, 1.0])
            ended = terminated or truncated
        env.reset()
    assert env.watch is not None
    env.close()
    seen = exposed[-1]
    bodies = seen.by("trainer_bodies", "type")
    assert bodies["dynamic"] == 5
    assert bodies["static"] > 50
    assert seen.value("trainer_progress_total", unit="episode") == 2
    assert seen.value("trainer_progress_total", unit="step") > 10
    assert env.watch is None


def test_a_world_that_cannot_be_read_before_the_first_reset_does_not_stop_training(exposed):
    class Simulation(gymnasium.Env):
        observation_space = action_space = gymnasium.spaces.Discrete(1)
        begun = False

        @property
        def world(self):
            if not self.begun:
                raise RuntimeError("reset() comes first")

        def reset(self, **options):
            self.begun = True
            return 0, {}

        def step(self, action):
            return 0, 0.0, False, False, {}

    env = HeapwatchWrapper(Simulation(), port=0)
    env.reset()
    env.step(0)
    env.close()
    assert exposed[-1].value("trainer_progress_total", unit="step") == 1


def test_environments_of_one_process_share_a_watch(exposed):
    envs = [HeapwatchWrapper(gymnasium.make("BipedalWalker-v3"), port=0) for _ in range(3)]
    assert len({env.watch.port for env in envs}) == 1
    for env in envs:
        env.reset(seed=0)
        env.step([0.0] * 4)
    for env in envs:
        env.close()
    assert exposed[0].by("trainer_bodies", "type")["dynamic"] == 15
    assert exposed[-1].by("trainer_bodies", "type")["dynamic"] == 5
    assert exposed[-1].value("trainer_progress_total", unit="step") == 3
    assert all(env.watch is None for env in envs)


@pytest.mark.parametrize("mode", ["sync", "async", "vector_entry_point"])
def test_a_vector_environment(exposed, mode):
    envs = HeapwatchVectorWrapper(
        gymnasium.make_vec("CartPole-v1", 4, vectorization_mode=mode), port=0, name="vector"
    )
    envs.reset(seed=0)
    for _ in range(60):
        envs.step(envs.action_space.sample())
    assert envs.watch.name == "vector"
    envs.close()
    assert exposed[-1].value("trainer_progress_total", unit="step") == 240
    assert exposed[-1].value("trainer_progress_total", unit="episode") >= 4
    assert envs.watch is None


def test_the_worlds_inside_a_vector_environment(exposed):
    envs = HeapwatchVectorWrapper(
        gymnasium.make_vec("BipedalWalker-v3", 2, vectorization_mode="sync"), port=0
    )
    envs.reset(seed=0)
    envs.step(envs.action_space.sample())
    envs.close()
    assert exposed[-1].by("trainer_bodies", "type")["dynamic"] == 10


def test_an_environment_is_made_again_from_its_spec_without_the_token():
    env = HeapwatchWrapper(gymnasium.make("CartPole-v1"), port=0, name="first", token="secret-of-this-run")
    spec = env.spec
    assert "secret" not in spec.to_json()
    again = gymnasium.make(spec)
    assert again.get_wrapper_attr("watch") is env.watch
    again.close()
    env.close()
