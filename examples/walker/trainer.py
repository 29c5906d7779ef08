"""The training loop, and the few lines that have it watched."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

import heapwatch
from examples.common.command import Rate, Served, profile
from examples.common.leaks import LeakSwitches, leak_file
from examples.walker import LEAKS
from examples.walker.cleaning import Cleaner
from examples.walker.ecosystem import Ecosystem
from examples.walker.health import HealthLog
from examples.walker.leaking import Leaks
from examples.walker.learner import Experience, Learner
from examples.walker.robot import Robot
from heapwatch.runtime.cleanup import CleanupTarget
from heapwatch.trackers.mlflow import log_memory

STEPS_PER_GENERATION = 1800
LEARN_EVERY = 4
STEPS_PER_CHECK = 30  # for an emergency
STEPS_PER_CLEANUP = 18_000  # ten minutes


class Walker:
    """Thirty robots learn to walk to their food.

    Args:
        population: how many robots.
        seed: of the world and of the network.
        rate: steps per second at most; None for as fast as it goes.
        auto_cleanup: whether it cleans up itself in an emergency.
        local_cleanup: whether commands of this machine may request a cleanup without the token.

    """

    def __init__(
        self,
        population: int = 30,
        seed: int = 0,
        rate: float | None = 30.0,
        auto_cleanup: bool = False,
        local_cleanup: bool = False,
    ) -> None:
        self.ecosystem = Ecosystem(population, seed)
        self.learner = Learner(seed)
        self.leaks = Leaks(LeakSwitches(leak_file("walker"), LEAKS), self.ecosystem, self.learner)
        self.cleaner = Cleaner(self.ecosystem, self.learner, self.leaks)
        self.health = HealthLog(self.ecosystem)
        self.steps = 0
        self._auto_cleanup = auto_cleanup
        self._local_cleanup = local_cleanup
        self._rate = Rate(rate)

    @contextmanager
    def watched(self, served: Served) -> Iterator[heapwatch.Watch]:
        """Have this trainer watched for as long as the context lasts."""
        ecosystem, learner = self.ecosystem, self.learner
        with heapwatch.start(
            "walker",
            **served,
            profile=profile("walker"),
            framework="torch",
            walker_names=True,
            local_cleanup=self._local_cleanup,
        ) as watch:
            watch.bodies(ecosystem.world, owners=ecosystem.owned_bodies)
            watch.entities("food_sources", lambda: ecosystem.food)
            watch.entities("active_agents", lambda: sum(robot.energy > 0 for robot in ecosystem.robots))
            for name in ecosystem.events:
                watch.events(name, lambda name=name: ecosystem.events[name])
            watch.buffer("replay", lambda: learner.replay)
            watch.objects(Robot, torch.Tensor)
            watch.size("policy.state_dict", learner.policy.state_dict)
            watch.size("optimizer.state_dict", learner.optimizer.state_dict)
            watch.on_cleanup(self.clean)
            _log_to_mlflow(watch)
            yield watch

    def clean(self, action: str, target: CleanupTarget) -> dict[str, int]:
        """Clean up for `action` of what the cleanup is for, and say what went."""
        removed = self.cleaner.clean(action, target.resource)
        self.health.cleaned(action, removed)
        return removed

    def train(self, watch: heapwatch.Watch, steps: int | None = None) -> None:
        """Train for `steps` steps, or for ever."""
        observations = self.ecosystem.observe()
        while steps is None or self.steps < steps:
            with watch.phase("simulate"):
                actions = self.learner.act(observations)
                rewards, deaths = self.ecosystem.step(actions)
                following = self.ecosystem.observe()
                for index, action in enumerate(actions):
                    self.learner.replay.append(
                        Experience(
                            observations[index],
                            action,
                            float(rewards[index]),
                            following[index],
                            bool(deaths[index]),
                        )
                    )
                observations = following
            self.steps += 1
            if self.steps % LEARN_EVERY == 0:
                with watch.phase("learn"):
                    self.learner.learn()
            if self.steps % STEPS_PER_GENERATION == 0:
                with watch.phase("evolve"):
                    self.ecosystem.evolve()
                    self.learner.end_generation()
                watch.progress("generation")
            self.leaks.step()
            watch.step()
            if self.steps % STEPS_PER_CLEANUP == 0:
                watch.cleanup("regular", "routine")
            if self._auto_cleanup and self.steps % STEPS_PER_CHECK == 0 and (why := self.health.emergency()):
                watch.cleanup("emergency", why)
            self.health.step(self.steps)
            self._rate.wait()


def _log_to_mlflow(watch: heapwatch.Watch) -> None:
    """Log to the run that is active, or a new one; nothing without MLFLOW_TRACKING_URI or MLFLOW_RUN_ID."""
    if not {"MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID"} & os.environ.keys():
        return
    import mlflow  # a trainer that does not log needs no MLflow

    run = mlflow.active_run() or mlflow.start_run()
    log_memory(watch, run.info.run_id)
    print(f"memory is logged to MLflow, run {run.info.run_id}", flush=True)
