"""The trading documents' leaks, made on purpose where the original trainer had them."""

import copy
from collections import deque
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch

from examples.common.leaks import LeakSwitches
from examples.erl_trading import LEAKS
from examples.erl_trading.agent import STATE, DDPGAgent
from examples.erl_trading.market import Array, TradingEnvironment


class Leaks:
    """What has leaked so far; each method is called where the original trainer leaked."""

    def __init__(self, switches: LeakSwitches) -> None:
        self._switches = switches
        self._due: dict[str, int] = dict.fromkeys(LEAKS, 0)
        self.environments: list[TradingEnvironment] = []
        self.old_agents: list[DDPGAgent] = []
        self.histories: list[Array] = []
        self.losses: list[torch.Tensor] = []
        self.clones: list[object] = []

    def step(self) -> None:
        """Count what has become due."""
        for name, units in self._switches.due().items():
            self._due[name] += units

    def take(self, name: str) -> int:
        """How many units of leak `name` are due; they count as leaked."""
        units, self._due[name] = self._due[name], 0
        return units

    def in_evaluation(self, market: Array) -> None:
        """Environments that nobody needs, and histories of their episodes."""
        for _ in range(self.take("environments")):
            self.environments.append(TradingEnvironment(market, seed=len(self.environments)))
        for _ in range(self.take("episodes")):
            self.histories.append(np.ones(250_000, dtype=np.float32))

    def in_training(self, agent: DDPGAgent) -> None:
        """Losses that keep the 512 states they were computed from."""
        for _ in range(self.take("tensors")):
            self.losses.append(agent.actor(torch.ones(512, STATE)).mean())

    def in_evolution(self, old: list[DDPGAgent], best: DDPGAgent, fitness: deque[float]) -> None:
        """Agents of `old` that are not let go, copies of `best`, plots of `fitness`."""
        for index in range(self.take("population")):
            self.old_agents.append(old[index % len(old)].clone())
        for _ in range(self.take("clones")):
            self.clones.append(copy.deepcopy({name: best.critic.state_dict() for name in range(8)}))
        for _ in range(self.take("figures")):
            figure, axes = plt.subplots()
            axes.plot(list(fitness))
            figure.canvas.draw()

    def clear(self) -> dict[str, int]:
        """Let go of everything; returns how many of each went."""
        kept: dict[str, list[Any]] = {
            "environments": self.environments,
            "agents": self.old_agents,
            "histories": self.histories,
            "losses": self.losses,
            "clones": self.clones,
        }
        removed = {name: len(items) for name, items in kept.items()}
        for items in kept.values():
            items.clear()
        removed["figures"] = len(plt.get_fignums())
        plt.close("all")
        return removed
