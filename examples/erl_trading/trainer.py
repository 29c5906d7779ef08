"""Evaluate, train, evolve: one generation after another, and the few lines that have it watched."""

import gc
import random
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch

import heapwatch
from examples.common.command import Rate, Served, profile
from examples.common.leaks import LeakSwitches, leak_file
from examples.erl_trading import LEAKS
from examples.erl_trading.agent import DDPGAgent, ReplayBuffer, Transition
from examples.erl_trading.leaking import Leaks
from examples.erl_trading.market import TradingEnvironment, make_market
from heapwatch.runtime.own_files import make_private
from heapwatch.text.numbers import size

mpl.use("agg")

POPULATION = 16
CAPACITY = 1000
BATCH = 32
UPDATES = 8  # gradient steps of each of the agents that learn, a generation
ELITE = 4
LARGE_BYTES = 1e6  # its market is a hundredth of a real one
MOST_UPLOADS = 50  # more are pending when uploads are slow


class ErlTrainer:
    """Sixteen agents trade; the best survive and learn from what all of them have seen.

    Args:
        seed: of the market and the networks.
        rate: environment steps per second at most; None for as fast as it goes.
        resume: whether it goes on from the last checkpoint.

    Raises:
        SystemExit: there is no checkpoint.

    """

    def __init__(self, seed: int = 0, rate: float | None = 100.0, resume: bool = False) -> None:
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        self.market = make_market(seed)
        self.eval_env = TradingEnvironment(self.market, seed + 1)
        self.val_env = TradingEnvironment(self.market, seed + 2)
        self.replay_buffer = ReplayBuffer(CAPACITY)
        self.population = [DDPGAgent() for _ in range(POPULATION)]
        self.best_agent = self.population[0].clone()
        self.generation = 0
        if resume:
            self._resume()
        self.best_fitness = float("-inf")
        self.fitness_history: deque[float] = deque(maxlen=1000)
        self.generation_times: deque[float] = deque(maxlen=1000)
        self.uploads: deque[int] = deque()  # generations whose checkpoint waits to be uploaded
        self._rate = Rate(rate)
        self.leaks = Leaks(LeakSwitches(leak_file("erl_trading"), LEAKS, self._rate.clock))
        self.steps = 0

    @contextmanager
    def watched(self, served: Served) -> Iterator[heapwatch.Watch]:
        """Have this trainer watched for as long as the context lasts."""
        with heapwatch.start(
            "erl_trading", **served, profile=profile("erl-trading"), framework="torch"
        ) as watch:
            watch.root = self
            watch.buffer("replay", "replay_buffer.buffer")
            watch.expect(TradingEnvironment, 2)  # eval_env and val_env
            watch.expect(DDPGAgent, POPULATION + 1)  # and the best
            watch.expect(ReplayBuffer, 1)
            watch.objects(list, dict, np.ndarray, torch.Tensor, mpl.figure.Figure)
            watch.events("fitness_history", "fitness_history")
            watch.events("generation_times", "generation_times")
            watch.events("upload_queue", "uploads", capacity=MOST_UPLOADS)
            watch.size("best_agent.actor", lambda: self.best_agent.actor.state_dict())
            watch.memory_report_interval(1, "generation", trend=True)
            watch.on_cleanup(self.clean)
            yield watch

    def train(self, watch: heapwatch.Watch, steps: int | None = None) -> None:
        """Train for about `steps` environment steps (whole generations), or for ever."""
        watch.checkpoint("baseline")
        if self.generation:
            watch.progress("generation", self.generation)
        try:
            while steps is None or self.steps < steps:
                self._run_generation(watch)
        finally:  # also at SIGTERM
            watch.checkpoint("end_of_training")
            print(watch.growth_since("baseline"), flush=True)
            for large in watch.large_objects(LARGE_BYTES):
                print(f"LARGE OBJECT: {large.type:<20} {size(large.nbytes)}", flush=True)

    def _run_generation(self, watch: heapwatch.Watch) -> None:
        started = time.monotonic()
        with watch.phase("evaluate_population"):
            fitness = self.evaluate_population(watch)
        watch.checkpoint("after_evaluation")
        with watch.phase("train_population"):
            self.train_population()
        watch.checkpoint("after_training")
        with watch.phase("evolve_population"):
            self.evolve_population(fitness)
        watch.checkpoint("after_evolution")
        self.generation_times.append(time.monotonic() - started)
        self.generation += 1
        self._save()
        self.uploads.append(self.generation)
        watch.progress("generation")

    def evaluate_population(self, watch: heapwatch.Watch) -> list[float]:
        """One episode of every agent; returns their fitness."""
        self.leaks.in_evaluation(self.market)
        if not (pending := self.leaks.take("uploads")):
            self.uploads.clear()  # an upload takes less than a generation
        self.uploads.extend([self.generation] * pending)
        return [self._run_episode(agent, watch) for agent in self.population]

    def train_population(self) -> None:
        """Gradient steps of the first few agents, once the buffer holds enough."""
        if len(self.replay_buffer) < 10 * BATCH:
            return
        for agent in self.population[:ELITE]:
            for _ in range(UPDATES):
                agent.learn(self.replay_buffer.sample(BATCH))
        self.leaks.in_training(self.best_agent)

    def evolve_population(self, fitness: list[float]) -> None:
        """The best survive; the others are mutants of them."""
        ranked = sorted(range(POPULATION), key=lambda index: fitness[index], reverse=True)
        self.fitness_history.append(max(fitness))
        if fitness[ranked[0]] > self.best_fitness:
            self.best_fitness = fitness[ranked[0]]
            self.best_agent = self.population[ranked[0]].clone()
        old = self.population
        self.population = _with_mutants([old[index] for index in ranked[:ELITE]])
        self.leaks.in_evolution(old, self.best_agent, self.fitness_history)
        del old
        gc.collect()  # networks and optimizers refer to each other

    def _save(self) -> None:
        """Replace the checkpoint: the agents that survived, the best first, without the replay buffer."""
        file = _checkpoint()
        make_private(file.parent)
        partial = file.with_suffix(".tmp")
        agents = [agent.weights() for agent in (self.best_agent, *self.population[:ELITE])]
        torch.save({"generation": self.generation, "agents": agents}, partial)
        partial.replace(file)

    def _resume(self) -> None:
        if not _checkpoint().exists():
            raise SystemExit(f"--resume: {_checkpoint()} does not exist, which the first generation writes")
        saved = torch.load(_checkpoint(), weights_only=True)
        self.generation = saved["generation"]
        self.best_agent, *elite = map(DDPGAgent.loaded, saved["agents"])
        self.population = _with_mutants(elite)
        print(f"resumed from the checkpoint of generation {self.generation}", flush=True)

    def clean(self, action: str) -> dict[str, int]:
        """Drop what has leaked, and bound the replay buffer again."""
        removed = self.leaks.clear()
        held = len(self.replay_buffer)
        self.replay_buffer.buffer = deque(self.replay_buffer.buffer, maxlen=CAPACITY)
        removed["experiences"] = held - len(self.replay_buffer)
        return removed

    def _run_episode(self, agent: DDPGAgent, watch: heapwatch.Watch) -> float:
        environment = self.eval_env
        state, done = environment.reset(), False
        while not done:
            action = agent.act(state, noise=0.1)
            following, reward, done = environment.step(action)
            self._remember(
                Transition(state=state, action=action, reward=reward, next_state=following, done=done)
            )
            state = following
            self.steps += 1
            watch.step()
            self._rate.wait()
            self.leaks.step()
        watch.progress("episode")
        return environment.get_episode_summary().fitness

    def _remember(self, transition: Transition) -> None:
        beyond = self.leaks.take("buffer")
        if beyond and self.replay_buffer.buffer.maxlen is not None:
            self.replay_buffer.buffer = deque(self.replay_buffer.buffer)  # rebound, its bound forgotten
        buffer = self.replay_buffer.buffer
        if buffer.maxlen is None and not beyond and len(buffer) >= CAPACITY:
            buffer.popleft()
        for _ in range(beyond):
            buffer.append(Transition(**{**transition, "state": transition["state"].copy()}))
        buffer.append(transition)


def _checkpoint() -> Path:
    return leak_file("erl_trading").with_name("erl_trading.pt")


def _with_mutants(elite: list[DDPGAgent]) -> list[DDPGAgent]:
    """A population of these and their mutants."""
    return elite + [random.choice(elite).mutate(0.05) for _ in range(POPULATION - len(elite))]
