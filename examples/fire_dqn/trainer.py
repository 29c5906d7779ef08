"""Episodes of fuel breaks, the original's cleanup schedule, and the few lines that have it watched."""

import gc
import random
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib as mpl
import torch
from matplotlib import pyplot as plt

import heapwatch
from examples.common.command import Rate, Served, profile
from examples.common.leaks import LeakSwitches, leak_file
from examples.fire_dqn import LEAKS
from examples.fire_dqn.agent import CAPACITY, KEPT_HISTORY, DQNAgent, Transition
from examples.fire_dqn.fire import FireGrid
from examples.fire_dqn.leaking import Leaks
from heapwatch.runtime.release import empty_cuda_cache

mpl.use("agg")

KEPT_EXPERIENCE = 2000
KEPT_STEP_TIMES = 100
KEPT_COLLECTION_TIMES = 20
KEPT_LOSSES = 20
COLLECT = 20  # transitions collected before they go into the memory


def _gpu_memory() -> str:
    """What torch's allocator holds, in words."""
    if not torch.cuda.is_available():
        return "no GPU"
    allocated, reserved = torch.cuda.memory_allocated() / 1e6, torch.cuda.memory_reserved() / 1e6
    return f"GPU memory {allocated:.1f} MB allocated, {reserved:.1f} MB reserved"


class FireTrainer:
    """One agent learns where to break the fuel.

    Args:
        seed: of the landscape and the network.
        rate: steps per second at most; None for as fast as it goes.

    """

    def __init__(self, seed: int = 0, rate: float | None = 25.0) -> None:
        random.seed(seed)
        torch.manual_seed(seed)
        self.grid = FireGrid(seed)
        self.agent = DQNAgent()
        self.collected: list[Transition] = []
        self._pending = 0  # of those collected, not yet in the memory
        self.tensor_losses: list[torch.Tensor] = []
        self.step_times: deque[float] = deque(maxlen=KEPT_STEP_TIMES)
        self.collection_times: deque[float] = deque(maxlen=KEPT_COLLECTION_TIMES)
        self.enforced = True  # the bounds, until a leak forgets one
        self._rate = Rate(rate)
        self.leaks = Leaks(LeakSwitches(leak_file("fire_dqn"), LEAKS, self._rate.clock))
        self.steps = 0
        self.episodes = 0

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
        try:
            while steps is None or self.steps < steps:
                with watch.phase("episode"):
                    self._run_episode(watch)
                watch.progress("episode")
        finally:  # also at SIGTERM
            self._clean_all("end of training")

    def clean(self, action: str) -> dict[str, int]:
        """Bring every history back to the original's bounds; an emergency empties the collector."""
        agent = self.agent
        removed = {
            "experience": max(len(self.collected) - (0 if action == "emergency" else KEPT_EXPERIENCE), 0),
            "losses": max(len(agent.losses) - KEPT_HISTORY, 0)
            + max(len(self.tensor_losses) - KEPT_LOSSES, 0),
            "figures": len(plt.get_fignums()),
        }
        plt.close("all")
        del self.collected[: removed["experience"]]
        self.enforced = True
        self._pending = min(self._pending, len(self.collected))
        del self.tensor_losses[:-KEPT_LOSSES]
        agent.cleanup_memory()
        kept = [held for held in agent.memory.buffer if held.next_state.grad_fn is None]
        removed["attached"] = len(agent.memory.buffer) - len(kept)
        agent.memory.buffer = deque(kept, maxlen=CAPACITY)
        return removed

    def clear_local_buffer(self) -> None:
        """Move what was collected and is not in the memory yet there, and forget the rest."""
        for transition in self.collected[len(self.collected) - self._pending :]:
            self.agent.memory.push(transition)
        self.collected.clear()
        self._pending = 0

    def _clean_collector(self) -> None:
        """Step and collection times stay bounded whatever a caller has made of them."""
        self.step_times = deque(self.step_times, maxlen=KEPT_STEP_TIMES)
        self.collection_times = deque(self.collection_times, maxlen=KEPT_COLLECTION_TIMES)
        print(f"Cleanup after step {self.steps}: experience buffer {len(self.collected)}", flush=True)

    def _clean_agent(self) -> None:
        empty_cuda_cache()
        print(f"Cleanup after update {self.agent.updates}: {_gpu_memory()}", flush=True)

    def _clean_all(self, when: str) -> None:
        if self.enforced:  # a leak that forgets a bound forgets to clear, too
            self.agent.cleanup_memory()
            self.clear_local_buffer()
        gc.collect()
        print(
            f"Performing memory cleanup ({when}): {_gpu_memory()}, "
            f"agent memory {len(self.agent.memory.buffer)}, experience buffer {len(self.collected)}",
            flush=True,
        )

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
            if self.enforced and len(self.collected) > KEPT_EXPERIENCE:
                del self.collected[:-KEPT_EXPERIENCE]
            if self._pending == COLLECT:
                self._hand_over()
            loss = self.agent.learn()
            if loss is not None:
                if self.agent.updates % 100 == 0:
                    self._clean_agent()
                self.tensor_losses.append(loss.detach())
                if len(self.tensor_losses) > KEPT_LOSSES:
                    del self.tensor_losses[0]
            self.steps += 1
            self.leaks.step(self)
            watch.step()
            if self.steps % 50 == 0:
                self._clean_collector()
            self.step_times.append(time.monotonic() - step_started)
            self._rate.wait()
        self.agent.rewards.append(total)
        self.agent.exploration = max(0.05, self.agent.exploration * 0.995)
        self.collection_times.append(time.monotonic() - started)
        self.episodes += 1
        if self.episodes % 10 == 0:
            self._clean_all(f"after episode {self.episodes}")

    def _hand_over(self) -> None:
        """Move what was collected last into the memory."""
        for transition in self.collected[-COLLECT:]:
            self.agent.memory.push(transition)
        del self.collected[-COLLECT:]
        self._pending = 0
