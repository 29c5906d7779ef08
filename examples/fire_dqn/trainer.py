"""Episodes of fuel breaks, the document's cleanup schedule, and the few lines that have it watched."""

import gc
import random
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib as mpl
import torch

import heapwatch
from examples.common.command import Served, profile
from examples.common.leaks import LeakSwitches, leak_file
from examples.common.pace import Pace
from examples.fire_dqn.agent import CAPACITY, KEPT_HISTORY, DQNAgent, Transition
from examples.fire_dqn.fire import FireGrid
from examples.fire_dqn.leaking import LEAKS, Leaks
from heapwatch.housekeeping import Schedule, bounded, close_figures
from heapwatch.runtime.release import empty_cuda_cache

mpl.use("agg")

KEPT_EXPERIENCE = 2000
KEPT_STEP_TIMES = 100
KEPT_COLLECTION_TIMES = 20
KEPT_LOSSES = 20
COLLECT = 20  # transitions collected before they go into the memory


class FireTrainer:
    """One agent learns where to break the fuel.

    Args:
        seed: of the landscape and the network.
        pace: steps per second at most; None for as fast as it goes.

    """

    def __init__(self, seed: int = 0, pace: float | None = 25.0) -> None:
        random.seed(seed)
        torch.manual_seed(seed)
        self.grid = FireGrid(seed)
        self.agent = DQNAgent()
        self.collected: list[Transition] = []
        self._pending = 0  # of those collected, not yet in the memory
        self.tensor_losses: list[torch.Tensor] = []
        self.step_times: deque[float] = deque(maxlen=KEPT_STEP_TIMES)
        self.collection_times: deque[float] = deque(maxlen=KEPT_COLLECTION_TIMES)
        self.leaks = Leaks(LeakSwitches(leak_file("fire_dqn"), LEAKS))
        self.steps = 0
        self._schedule = self._cleanup_schedule()
        self._pace = Pace(pace)

    @contextmanager
    def watched(self, served: Served) -> Iterator[heapwatch.Watch]:
        """Have this trainer watched for as long as the context lasts."""
        with heapwatch.start("fire_dqn", **served, profile=profile("fire-dqn"), framework="torch") as watch:
            watch.root = self
            watch.buffer("memory", "agent.memory.buffer")
            watch.buffer("experience", "collected", capacity=KEPT_EXPERIENCE)
            watch.buffer("tensor_losses", "tensor_losses", capacity=KEPT_LOSSES)
            watch.events("losses", "agent.losses", capacity=KEPT_HISTORY)
            watch.events("rewards", "agent.rewards", capacity=KEPT_HISTORY)
            watch.events("step_times", "step_times")
            watch.events("collection_times", "collection_times")
            watch.objects(torch.Tensor, FireGrid, DQNAgent, mpl.figure.Figure)
            watch.memory_report_interval(100, "episode")
            watch.on_cleanup(self.clean)
            yield watch

    def train(self, watch: heapwatch.Watch, steps: int | None = None) -> None:
        """Train for about `steps` steps (whole episodes), or for ever."""
        while steps is None or self.steps < steps:
            with watch.phase("episode"):
                self._run_episode(watch)
            watch.progress("episode")

    def clean(self, action: str) -> dict[str, int]:
        """Bring every history back to the document's bounds; an emergency empties the collector."""
        agent = self.agent
        removed = {
            "experience": max(len(self.collected) - (0 if action == "emergency" else KEPT_EXPERIENCE), 0),
            "losses": max(len(agent.losses) - KEPT_HISTORY, 0)
            + max(len(self.tensor_losses) - KEPT_LOSSES, 0),
            "figures": close_figures(),
        }
        del self.collected[: removed["experience"]]
        self._pending = min(self._pending, len(self.collected))
        del self.tensor_losses[:-KEPT_LOSSES]
        agent.losses = bounded(agent.losses, KEPT_HISTORY)
        agent.memory.buffer = bounded(agent.memory.buffer, CAPACITY)
        return removed

    def _cleanup_schedule(self) -> Schedule:
        """The document's: collector every 50 steps, device cache every 100 updates, all every 10 episodes."""
        schedule = Schedule()
        schedule.every(50, "step")(self._trim_times)
        schedule.every(100, "update")(empty_cuda_cache)
        schedule.every(10, "episode")(gc.collect)
        return schedule

    def _trim_times(self) -> None:
        """Step and collection times stay bounded whatever a caller has made of them."""
        self.step_times = bounded(self.step_times, KEPT_STEP_TIMES)
        self.collection_times = bounded(self.collection_times, KEPT_COLLECTION_TIMES)

    def _run_episode(self, watch: heapwatch.Watch) -> None:
        state, done, total = torch.from_numpy(self.grid.reset()), False, 0.0
        started = time.monotonic()
        while not done:
            step_started = time.monotonic()
            action = self.agent.act(state)
            following, reward, done = self.grid.step(action)
            next_state = torch.from_numpy(following)
            self.collected.append(Transition(state, action, reward, next_state, done))
            state, total = next_state, total + reward
            self._pending += 1
            if self._pending == COLLECT:
                self._hand_over()
            loss = self.agent.learn()
            if loss is not None:
                self._schedule.tick("update")
                self.tensor_losses.append(loss.detach())
                if len(self.tensor_losses) > KEPT_LOSSES:
                    del self.tensor_losses[0]
            self.steps += 1
            self.leaks.step(self)
            watch.step()
            self._schedule.tick("step")
            self.step_times.append(time.monotonic() - step_started)
            self._pace.wait()
        self.agent.rewards.append(total)
        self.agent.exploration = max(0.05, self.agent.exploration * 0.995)
        self.collection_times.append(time.monotonic() - started)
        self._schedule.tick("episode")

    def _hand_over(self) -> None:
        """Move what was collected last into the memory."""
        self.agent.memory.buffer.extend(self.collected[-COLLECT:])
        del self.collected[-COLLECT:]
        self._pending = 0
