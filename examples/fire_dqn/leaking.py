"""The fuel breaks document's leaks, made on purpose."""

from typing import Any

import matplotlib.pyplot as plt
import torch

from examples.common.leaks import LeakSwitches
from examples.fire_dqn.agent import DEVICE, Transition
from examples.fire_dqn.fire import CHANNELS, SIDE


class Leaks:
    """Adds what is due to the trainer's own containers."""

    def __init__(self, switches: LeakSwitches) -> None:
        self._switches = switches

    def step(self, trainer: Any) -> None:
        """Leak what has become due since the last step into `trainer`, a `FireTrainer`."""
        self._switches.apply(self, trainer)

    def _leak_losses(self, trainer: Any, units: int) -> None:
        trainer.enforced = False
        trainer.agent.losses = list(trainer.agent.losses)
        trainer.agent.losses.extend(float(unit) for unit in range(units))

    def _leak_experience(self, trainer: Any, units: int) -> None:
        trainer.enforced = False
        for _ in range(units):
            state = torch.ones(CHANNELS, SIDE, SIDE)
            forgotten = Transition(state, 0, 0.0, torch.ones_like(state), False)
            trainer.collected.insert(0, forgotten)  # before those that are still to be handed over

    def _leak_graph(self, trainer: Any, units: int) -> None:
        for _ in range(units):
            state = torch.ones(16, CHANNELS, SIDE, SIDE, device=DEVICE)
            trainer.tensor_losses.append(trainer.agent.network(state).mean())

    def _leak_attached(self, trainer: Any, units: int) -> None:
        for _ in range(units):
            state = torch.ones(CHANNELS, SIDE, SIDE, device=DEVICE)
            seen = state + trainer.agent.network(state.unsqueeze(0)).mean()
            trainer.agent.memory.buffer.append(Transition(seen, 0, 0.0, seen, False))

    def _leak_figures(self, trainer: Any, units: int) -> None:
        for _ in range(units):
            figure, axes = plt.subplots()
            axes.imshow(trainer.grid.reset()[0])
            figure.canvas.draw()
