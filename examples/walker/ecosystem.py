"""The world that the robots live in: food, energy, death, predation and birth."""

import random
from collections import deque
from collections.abc import MutableSequence
from itertools import pairwise
from typing import Any

import Box2D as b2
import numpy as np
from numpy.typing import NDArray

from examples.walker.robot import Robot

HALF_WIDTH = 60.0  # metres
FOOD_LOW, FOOD_HIGH = 5, 15
EVENTS_KEPT = 500
POOL_SIZE = 8


class Ecosystem:
    """A Box2D world of about 30 robots.

    Every body belongs to someone: the ground, a robot, or the pool of spare parts. A body that
    nobody owns is a leak, and is what the monitoring calls `unknown`.
    """

    def __init__(self, population: int = 30, seed: int = 0) -> None:
        random.seed(seed)
        self.world = b2.b2World(gravity=(0, -10))
        self.ground = self.world.CreateStaticBody()
        corners = [(-HALF_WIDTH, 20), (-HALF_WIDTH, 0), (HALF_WIDTH, 0), (HALF_WIDTH, 20)]
        for start, end in pairwise(corners):
            self.ground.CreateFixture(shape=b2.b2EdgeShape(vertices=[start, end]), friction=0.8)
        self.food: list[float] = []
        self.events: dict[str, MutableSequence[dict[str, float]]] = {
            name: deque(maxlen=EVENTS_KEPT) for name in ("consumption", "death", "predation")
        }
        self.spare_parts: list[Any] = []
        self._born = 0
        self.robots = [self._birth() for _ in range(population)]
        while len(self.food) < FOOD_HIGH - FOOD_LOW:
            self._grow_food()

    def step(self, actions: list[int]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Advance by 1/30 s: `actions` one per robot; returns rewards and deaths, shape (robots,)."""
        before = [robot.x for robot in self.robots]
        towards = [np.sign(self.nearest_food(x)) for x in before]
        for robot, action in zip(self.robots, actions, strict=True):
            robot.act(action)
        self.world.Step(1 / 30, 6, 2)
        rewards = np.zeros(len(self.robots), dtype=np.float32)
        for index, robot in enumerate(self.robots):
            robot.energy -= 0.05 * robot.size
            rewards[index] = (robot.x - before[index]) * towards[index] + self._eat(robot)
            robot.fitness += float(rewards[index])
        self._prey()
        deaths = np.array([robot.energy <= 0 for robot in self.robots])
        for dead in np.flatnonzero(deaths):
            self._replace(int(dead), "death")
        if len(self.food) < FOOD_LOW or (len(self.food) < FOOD_HIGH and random.random() < 0.01):
            self._grow_food()
        return rewards, deaths

    def observe(self) -> NDArray[np.float32]:
        """What every robot senses, shape (robots, 14)."""
        return np.stack([robot.observe(self.nearest_food(robot.x)) for robot in self.robots])

    def nearest_food(self, x: float) -> float:
        """Signed distance in metres from `x` to the nearest food; 0 when there is none."""
        return min((place - x for place in self.food), key=abs, default=0.0)

    def evolve(self) -> None:
        """End a generation: the weakest tenth makes room for newborns."""
        ranked = sorted(range(len(self.robots)), key=lambda index: self.robots[index].fitness)
        for index in ranked[: len(self.robots) // 10]:
            self._replace(index, "death")
        for robot in self.robots:
            robot.fitness = 0.0

    def owned_bodies(self) -> dict[str, list[Any]]:
        """Every body that someone answers for, by type."""
        limbs = [limb for robot in self.robots for limb in robot.limbs]
        return {
            "static": [self.ground],
            "agent": [robot.chassis for robot in self.robots],
            "dynamic": limbs + self.spare_parts,
        }

    def body_types(self) -> dict[str, int]:
        """How many bodies there are of each type; one that does not move is `static`, whoever made it."""
        owned = self.owned_bodies()
        static = sum(body.type == b2.b2_staticBody for body in self.world.bodies)
        agents, limbs = len(owned["agent"]), len(owned["dynamic"])
        unknown = self.world.bodyCount - static - agents - limbs
        return {"static": static, "dynamic": limbs, "terrain": 0, "agent": agents, "unknown": unknown}

    def destroy_orphans(self) -> int:
        """Destroy every body that nobody owns; returns how many."""
        owned = {body for bodies in self.owned_bodies().values() for body in bodies}
        orphans = [body for body in self.world.bodies if body not in owned]
        for body in orphans:
            self.world.DestroyBody(body)
        return len(orphans)

    def drop_spare_parts(self) -> int:
        """Destroy the pool of spare parts; returns how many bodies."""
        dropped = len(self.spare_parts)
        for part in self.spare_parts:
            self.world.DestroyBody(part)
        self.spare_parts.clear()
        return dropped

    def _birth(self, limbs: int = 0) -> Robot:
        self._born += 1
        limbs = limbs or (6 if self._born % 6 == 0 else 5)
        x = random.uniform(-HALF_WIDTH + 2, HALF_WIDTH - 2)
        return Robot(self.world, x, limbs, group=self._born % 30000 + 1)

    def _replace(self, index: int, event: str) -> None:
        robot = self.robots[index]
        self.events[event].append({"x": robot.x, "fitness": robot.fitness, "size": robot.size})
        limbs = len(robot.limbs)
        robot.destroy(self.world)
        self.robots[index] = self._birth(limbs)

    def _eat(self, robot: Robot) -> float:
        for place in self.food:
            if abs(place - robot.x) < 1.0:
                self.food.remove(place)
                robot.energy = min(robot.energy + 40.0, 150.0)
                self.events["consumption"].append({"x": place, "energy": robot.energy})
                return 10.0
        return 0.0

    def _prey(self) -> None:
        """A strong robot that meets a much weaker one takes its energy."""
        ordered = sorted(range(len(self.robots)), key=lambda index: self.robots[index].x)
        for left, right in pairwise(ordered):
            hunter, prey = self.robots[left], self.robots[right]
            if hunter.size < prey.size:
                hunter, prey = prey, hunter
            near = abs(hunter.x - prey.x) < 0.5
            if near and 0 < prey.energy < 20.0 < hunter.energy and random.random() < 0.02:
                self.events["predation"].append({"x": prey.x, "energy": prey.energy})
                hunter.energy = min(hunter.energy + prey.energy, 150.0)
                prey.energy = 0.0

    def _grow_food(self) -> None:
        self.food.append(random.uniform(-HALF_WIDTH + 1, HALF_WIDTH - 1))
