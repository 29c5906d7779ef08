"""The three trainers beside the walker: they learn, they stay bounded, each leak lands where it should."""

from contextlib import nullcontext

import pytest
import torch

from examples.common.leaks import write
from examples.erl_trading.trainer import CAPACITY, ErlTrainer
from examples.fire_dqn.trainer import KEPT_EXPERIENCE, FireTrainer
from examples.metta_ppo.trainer import STORED_POLICIES, MettaTrainer
from heapwatch.measure.objects.tracked import Large

pytestmark = pytest.mark.slow


class Watch:
    """Counts what a trainer tells its watch."""

    def __init__(self):
        self.steps = 0
        self.units = {}
        self.labels = []

    def phase(self, name):
        return nullcontext()

    def step(self):
        self.steps += 1

    def checkpoint(self, label):
        self.labels.append(label)

    def growth_since(self, label):
        return f"since {label}"

    def large_objects(self, _nbytes):
        return [Large("ndarray", 20_000_000)]

    def progress(self, unit):
        self.units[unit] = self.units.get(unit, 0) + 1


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("HEAPWATCH_STATE", str(tmp_path))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small networks: more threads wait for each other
    yield tmp_path
    torch.set_num_threads(threads)


def switched(state, name, trainer, **rates):
    """Switch leaks of `trainer` on, as if a minute had gone by since."""
    write(state / "run" / f"{name}-leaks.json", rates)
    switches = trainer.leaks._switches
    switches._clock, switches._counted, switches._refreshed = lambda: 60.0, 0.0, 0.0
    switches.refresh()


def weights(module):
    return torch.cat([weight.detach().flatten().clone() for weight in module.parameters()])


def test_traders_evolve_and_only_two_environments_live(state):
    trainer, watch = ErlTrainer(rate=None), Watch()
    before = weights(trainer.population[0].critic)
    trainer.train(watch, steps=800)
    assert watch.steps == 800
    assert watch.units == {"episode": 32, "generation": 2}
    points = ["after_evaluation", "after_training", "after_evolution"]
    assert watch.labels == ["baseline", *points * 2, "end_of_training"]
    assert len(trainer.generation_times) == 2
    assert len(trainer.uploads) == 1
    assert len(trainer.replay_buffer) == 800
    assert all(not torch.equal(weights(agent.critic), before) for agent in trainer.population[:1])
    assert trainer.eval_env.episode_rewards == []


def test_every_trading_leak_is_kept_and_cleaned(state):
    trainer, watch = ErlTrainer(rate=None), Watch()
    rates = {"environments": 16.0, "population": 16.0, "episodes": 3.0, "clones": 2.0, "figures": 1.0}
    switched(state, "erl_trading", trainer, **rates, buffer=1000.0)
    trainer.train(watch, steps=800)
    assert len(trainer.leaks.environments) == 16
    assert len(trainer.leaks.old_agents) == 16
    assert len(trainer.replay_buffer) > CAPACITY
    assert trainer.replay_buffer.buffer.maxlen is None

    removed = trainer.clean("regular")

    assert removed["environments"] == 16
    assert removed["agents"] == 16
    assert removed["figures"] == 1
    assert trainer.leaks.environments == []
    assert trainer.replay_buffer.buffer.maxlen == CAPACITY


def test_foragers_learn_and_everything_they_keep_is_bounded(monkeypatch):
    monkeypatch.setattr("examples.metta_ppo.trainer.STORED_POLICIES", 1)
    monkeypatch.setattr("examples.metta_ppo.trainer.EVALUATE_EVERY", 1)
    trainer, watch = MettaTrainer(rate=None), Watch()
    try:
        before = weights(trainer.policy)
        trainer.train(watch, steps=64 * 2)
        assert watch.units == {"epoch": 2}
        assert not torch.equal(weights(trainer.policy), before)
        assert list(trainer.lstm_states) == ["live"]
        assert len(trainer.policy_store) == 1
        assert list(trainer.stats) == ["reward"]
    finally:
        trainer.environments.close()


def test_every_foraging_leak_grows_its_own_container(state):
    trainer, watch = MettaTrainer(rate=None), Watch()
    try:
        switched(state, "metta_ppo", trainer, lstm=2.0, stats=2.0, evals=3.0, policy_store=10.0)
        trainer.train(watch, steps=64)
        assert len(trainer.lstm_states) > 50
        assert len(trainer.stats) == 3
        assert len(trainer.evals) == 3
        assert len(trainer.policy_store) == 10
        trainer.clean("regular")
        assert list(trainer.lstm_states) == ["live"]
        assert len(trainer.policy_store) == STORED_POLICIES
    finally:
        trainer.environments.close()


def test_fuel_breaks_are_learnt_and_histories_keep_their_bounds(state):
    trainer, watch = FireTrainer(rate=None), Watch()
    before = weights(trainer.agent.network)
    trainer.train(watch, steps=120)
    assert watch.units == {"episode": 12}
    assert not torch.equal(weights(trainer.agent.network), before)
    assert len(trainer.agent.memory.buffer) == 120
    assert len(trainer.collected) == 0
    assert len(trainer.step_times) == 100
    assert len(trainer.collection_times) == 12


def test_every_fuel_break_leak_passes_its_bound_and_is_brought_back(state):
    trainer, watch = FireTrainer(rate=None), Watch()
    switched(
        state, "fire_dqn", trainer, losses=3000.0, experience=30.0, graph=30.0, attached=5.0, figures=2.0
    )
    trainer.train(watch, steps=10)
    assert len(trainer.agent.losses) >= 3000
    assert len(trainer.collected) >= 30
    assert any(loss.grad_fn is not None for loss in trainer.tensor_losses)
    assert len(trainer.tensor_losses) > 20
    removed = trainer.clean("emergency")
    assert (removed["figures"], removed["attached"]) == (2, 5)
    assert len(trainer.agent.losses) == 1000
    assert len(trainer.collected) == 0 < KEPT_EXPERIENCE
    assert len(trainer.tensor_losses) == 20
