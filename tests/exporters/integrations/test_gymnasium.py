import gymnasium

from heapwatch.integrations.gymnasium import HeapwatchWrapper


def test_the_bodies_of_a_box2d_world_that_is_remade_at_every_reset(exposed):
    env = HeapwatchWrapper(gymnasium.make("BipedalWalker-v3"), port=0)
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


def test_an_environment_without_a_world_is_watched_too(exposed):
    env = HeapwatchWrapper(gymnasium.make("CartPole-v1"), port=0)
    env.reset(seed=0)
    env.step(0)
    env.close()
    assert exposed[-1].value("trainer_progress_total", unit="step") == 1
    assert exposed[-1].by("trainer_bodies", "type") == {}
