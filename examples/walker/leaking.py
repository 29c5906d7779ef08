"""The Walker document's leaks, made on purpose."""

from collections import deque
from typing import Any

import Box2D as b2
import numpy as np

from examples.common.leaks import LeakSwitches
from examples.walker.ecosystem import HALF_WIDTH, Ecosystem
from examples.walker.learner import Experience, Learner
from examples.walker.robot import OBSERVATIONS


class Leaks:
    """Adds what is due of each leak, at the trainer's own rate."""

    def __init__(self, switches: LeakSwitches, ecosystem: Ecosystem, learner: Learner) -> None:
        self._switches = switches
        self._ecosystem = ecosystem
        self._learner = learner
        self._places = 0
        self.history: list[bytes] = []

    def step(self) -> None:
        """Leak what has become due since the last step."""
        self._switches.apply(self)

    def _leak_static(self, units: int) -> None:
        for _ in range(units):
            self._ecosystem.world.CreateStaticBody(position=self._below_ground(), shapes=self._shape())

    def _leak_dynamic(self, units: int) -> None:
        self._ecosystem.spare_parts.extend(self._part() for _ in range(units))

    def _leak_unknown(self, units: int) -> None:
        for _ in range(units):
            self._part()

    def _leak_food(self, units: int) -> None:
        self._ecosystem.food.extend(2 * HALF_WIDTH + 10.0 for _ in range(units))  # out of every robot's reach

    def _leak_events(self, units: int) -> None:
        events = self._ecosystem.events
        if isinstance(events["consumption"], deque):
            events["consumption"] = list(events["consumption"])
        events["consumption"].extend({"x": 0.0, "energy": float(unit)} for unit in range(units))

    def _leak_replay(self, units: int) -> None:
        if isinstance(self._learner.replay, deque):
            self._learner.replay = list(self._learner.replay)
        for _ in range(units):
            observation = np.zeros(OBSERVATIONS, dtype=np.float32)
            self._learner.replay.append(Experience(observation, 0, 0.0, observation.copy(), False))

    def _leak_memory(self, units: int) -> None:
        self.history.extend(b"\x01" * 1_000_000 for _ in range(units))

    def _part(self) -> Any:
        return self._ecosystem.world.CreateDynamicBody(
            position=self._below_ground(), shapes=self._shape(), awake=False, gravityScale=0.0
        )

    def _below_ground(self) -> tuple[float, float]:
        """A place of its own below the ground, so that leaked bodies never touch anything."""
        self._places += 1
        return (self._places % 1000) * 2.0, -10.0 - 2.0 * (self._places // 1000)

    @staticmethod
    def _shape() -> Any:
        return b2.b2PolygonShape(box=(0.2, 0.2))
