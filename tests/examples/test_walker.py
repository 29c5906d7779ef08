import re
from collections import deque

import pytest

from examples.common.leaks import LeakSwitches, write
from examples.walker import LEAKS
from examples.walker.cleaning import EMERGENCY_FOOD, REGULAR_FOOD, Cleaner
from examples.walker.ecosystem import Ecosystem
from examples.walker.health import HealthLog
from examples.walker.leaking import Leaks
from examples.walker.learner import BATCH, REPLAY_CAPACITY, Experience, Learner


@pytest.fixture
def ecosystem():
    return Ecosystem()


def bodies(ecosystem):
    return {kind: len(owned) for kind, owned in ecosystem.owned_bodies().items()}


def test_a_healthy_world_is_the_documents(ecosystem):
    assert bodies(ecosystem) == {"static": 1, "dynamic": 155, "agent": 30}
    assert ecosystem.world.bodyCount == 186


def test_deaths_and_births_leave_no_body_behind(ecosystem):
    for _ in range(30):
        ecosystem.evolve()
    assert len(ecosystem.events["death"]) == 90
    assert ecosystem.world.bodyCount == 186
    assert ecosystem.destroy_orphans() == 0


@pytest.mark.slow
def test_robots_eat_and_food_grows_back(ecosystem):
    ecosystem.food[:] = places = [robot.x for robot in ecosystem.robots[:10]]
    for _ in range(15):
        ecosystem.step([4] * 30)
    assert len(ecosystem.events["consumption"]) >= 10
    assert not {*places} & {*ecosystem.food}
    for _ in range(300):
        assert 4 <= len(ecosystem.food) <= 15
        ecosystem.step([4] * 30)


@pytest.mark.slow
def test_learning_changes_the_policy_once_there_is_experience(ecosystem):
    learner = Learner()
    observations = ecosystem.observe()
    before = [parameter.clone() for parameter in learner.policy.parameters()]
    learner.learn()
    assert all((old == new).all() for old, new in zip(before, learner.policy.parameters(), strict=True))
    for index in range(10 * BATCH):
        row = observations[index % 30]
        learner.replay.append(Experience(row, index % 9, 1.0, row, False))
    learner.learn()
    assert any((old != new).any() for old, new in zip(before, learner.policy.parameters(), strict=True))


def leaking(ecosystem, learner, path, **rates):
    write(path, rates)
    leaks = Leaks(LeakSwitches(path, LEAKS, iter([0.0, 60.0]).__next__), ecosystem, learner)
    leaks.step()
    return leaks


def test_every_leak_leaks_and_an_emergency_gives_it_back(ecosystem, tmp_path):
    learner = Learner()
    rates = dict.fromkeys(LEAKS, 50.0) | {"replay": 30_000.0, "memory": 5.0}
    leaks = leaking(ecosystem, learner, tmp_path / "leaks.json", **rates)
    assert ecosystem.world.bodyCount == 186 + 150
    assert bodies(ecosystem)["dynamic"] == 155 + 50
    assert len(ecosystem.food) == 60
    assert isinstance(ecosystem.events["consumption"], list)
    assert len(learner.replay) == 30_000 > REPLAY_CAPACITY
    assert len(leaks.history) == 5

    removed = Cleaner(ecosystem, learner, leaks).clean("emergency")

    assert removed == {"bodies": 150, "food_sources": 50, "experiences": 20_000, "events": 50, "history": 5}
    assert bodies(ecosystem) == {"static": 1, "dynamic": 155, "agent": 30}
    assert ecosystem.world.bodyCount == 186
    assert len(ecosystem.food) == EMERGENCY_FOOD
    assert not ecosystem.events["consumption"]
    assert isinstance(learner.replay, deque)


@pytest.mark.parametrize("action", ["regular", "emergency"])
def test_a_cleanup_for_bodies_leaves_a_healthy_replay_buffer_alone(ecosystem, tmp_path, action):
    learner = Learner()
    leaks = leaking(ecosystem, learner, tmp_path / "leaks.json", unknown=60.0)
    row = ecosystem.observe()[0]
    learner.replay.extend(Experience(row, 0, 0.0, row, False) for _ in range(REPLAY_CAPACITY))
    removed = Cleaner(ecosystem, learner, leaks).clean(action)
    assert removed["bodies"] == 60
    assert removed["experiences"] == 0
    assert len(learner.replay) == REPLAY_CAPACITY


def test_a_regular_cleanup_for_one_resource_leaves_the_others_alone(ecosystem, tmp_path):
    learner = Learner()
    leaks = leaking(ecosystem, learner, tmp_path / "leaks.json", unknown=60.0, food=100.0, memory=3.0)
    cleaner = Cleaner(ecosystem, learner, leaks)
    assert cleaner.clean("regular", "bodies") == {"bodies": 60}
    assert len(leaks.history) == 3
    assert cleaner.clean("regular", "entities").keys() == {"food_sources"}
    assert len(ecosystem.food) == REGULAR_FOOD
    assert cleaner.clean("regular", "memory")["history"] == 3


def test_the_health_line_is_the_documents_and_reports_orphans(ecosystem, tmp_path, capsys):
    leaking(ecosystem, Learner(), tmp_path / "leaks.json", unknown=60.0)
    health = HealthLog(ecosystem)
    health.step(5558)
    health.step(5559)
    printed = capsys.readouterr().out.splitlines()
    (at,) = (at for at, line in enumerate(printed) if "Memory=" in line)
    # Limits that this process exceeds follow, such as that of its memory.
    line, types, orphans = printed[at : at + 3]
    assert re.fullmatch(r"\d\d:\d\d:\d\d: Memory=\d+\.\dMB, Bodies=246, Food=\d+, Step=5558", line)
    assert types == "   Body Types: Static=1, Dynamic=155, Terrain=0, Agent=30, Unknown=60"
    assert orphans == "   ORPHANS: 60 bodies that nobody owns"
