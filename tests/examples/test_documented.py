"""What the documents promise of the examples' own code, tried without a process."""

import pytest
import torch

from examples.fire_dqn.agent import CAPACITY, DQNAgent, Transition
from examples.fire_dqn.fire import CHANNELS, SIDE
from examples.fire_dqn.trainer import FireTrainer
from examples.metta_ppo.__main__ import tracking
from examples.metta_ppo.tracking import MemoryTracking


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("HEAPWATCH_STATE", str(tmp_path))


def transition(agent):
    state = torch.ones(CHANNELS, SIDE, SIDE)
    seen = state + agent.network(state.unsqueeze(0)).mean()
    return Transition(seen, 0, 0.0, seen, False)


def test_what_is_pushed_holds_no_graph():
    agent = DQNAgent()
    agent.memory.push(transition(agent))
    assert agent.memory.buffer[0].state.grad_fn is None
    assert agent.memory.buffer[0].next_state.grad_fn is None


def test_cleaning_bounds_what_was_rebound_and_resetting_forgets_it():
    agent = DQNAgent()
    agent.losses = [0.0] * 3000
    agent.memory.buffer = list(range(CAPACITY + 50))
    agent.cleanup_memory()
    assert len(agent.losses) == 1000
    assert len(agent.memory.buffer) == CAPACITY
    agent.reset_memory()
    assert not agent.losses
    assert not agent.memory.buffer


def test_clearing_the_local_buffer_loses_nothing_that_was_not_handed_over():
    trainer = FireTrainer(rate=None)
    held = transition(trainer.agent)
    trainer.collected = [held] * 7
    trainer._pending = 3
    trainer.clear_local_buffer()
    assert trainer.collected == []
    assert len(trainer.agent.memory.buffer) == 3


def test_a_cleanup_takes_attached_transitions_out_of_the_memory():
    trainer = FireTrainer(rate=None)
    trainer.agent.memory.push(transition(trainer.agent))
    trainer.agent.memory.buffer.append(transition(trainer.agent))
    assert trainer.clean("regular")["attached"] == 1
    assert len(trainer.agent.memory.buffer) == 1


def test_tracking_is_set_by_yaml_and_overrides(tmp_path):
    file = tmp_path / "trainer.yaml"
    file.write_text("trainer:\n  memory_report_interval: 50\n  total_timesteps: 1000\n")
    arguments = ["prog", "--config", str(file), "trainer.memory_leak_threshold_mb=2", "--steps", "3"]
    assert tracking(arguments) == MemoryTracking(True, 50, 2)
    assert arguments == ["prog", "--steps", "3"]


@pytest.mark.parametrize(
    "setting",
    ["trainer.memory=1", "trainer.memory_report_interval=often", "trainer.memory_tracking_enabled=1"],
)
def test_a_wrong_override_is_refused(setting):
    with pytest.raises(ValueError, match="memory"):
        MemoryTracking().overridden([setting])
