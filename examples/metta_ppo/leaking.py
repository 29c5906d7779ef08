"""The Metta document's leaks, made on purpose."""

import copy
from typing import Any

import torch

from examples.common.leaks import LeakSwitches
from examples.metta_ppo.environment import VectorEnvironments
from examples.metta_ppo.policy import HIDDEN, Policy

MB = 1_000_000


class Leaks:
    """Adds what is due to the trainer's own containers."""

    def __init__(self, switches: LeakSwitches) -> None:
        self._switches = switches
        self._made = 0

    def step(self, trainer: Any) -> None:
        """Leak what has become due since the last step into `trainer`, a `MettaTrainer`."""
        self._switches.apply(self, trainer)

    def _next(self) -> int:
        self._made += 1
        return self._made

    def _leak_lstm(self, trainer: Any, units: int) -> None:
        for _ in range(units * MB // (2 * 4 * HIDDEN * 64)):
            state = torch.zeros(64, HIDDEN)
            trainer.lstm_states[f"gone-{self._next()}"] = (state, state.clone())

    def _leak_stats(self, trainer: Any, units: int) -> None:
        for _ in range(units):
            trainer.stats[f"episode/{self._next()}"] = [float(value) for value in range(MB // 32)]

    def _leak_evals(self, trainer: Any, units: int) -> None:
        trainer.evals.extend({"epoch": self._next(), "replay": torch.ones(MB // 4)} for _ in range(units))

    def _leak_policy_store(self, trainer: Any, units: int) -> None:
        policy: Policy = trainer.policy
        trainer.policy_store.extend(copy.deepcopy(policy.state_dict()) for _ in range(units))

    def _leak_workers(self, trainer: Any, units: int) -> None:
        environments: VectorEnvironments = trainer.environments
        environments.leak(units * MB)
