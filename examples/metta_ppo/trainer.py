"""Rollout, train, one epoch after another, and the few lines that have it watched."""

import copy
import os
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import torch

import heapwatch
from examples.common.command import Rate, Served, profile
from examples.common.leaks import LeakSwitches, leak_file
from examples.metta_ppo import LEAKS
from examples.metta_ppo.environment import VectorEnvironments
from examples.metta_ppo.leaking import Leaks
from examples.metta_ppo.policy import HIDDEN, HORIZON, Experience, Losses, Policy, State, update
from examples.metta_ppo.tracking import MemoryTracking
from heapwatch.trackers.wandb import log_memory

WORKERS, EACH = 2, 8
STORED_POLICIES = 5
KEPT_EVALS = 50
KEPT_READINGS = 1000
EVALUATE_EVERY = 10
PROFILE_EVERY = 50
MEASURE_EVERY = 10
WATCHED = (
    "experience",
    "experience.obs",
    "experience.actions",
    "experience.rewards",
    "experience.values",
    "experience.lstm_h",
    "experience.lstm_c",
    "lstm_states",
    "trainer.stats",
    "trainer.losses",
    "trainer.evals",
    "policy_store",
    "curriculum",
    "system_monitor._metrics",
)
OPTIONAL = ("wandb_run", "torch_profiler")


class SystemMonitor:
    """The newest readings of CPU and memory use, as the trainer keeps them for its own plots."""

    def __init__(self) -> None:
        self._metrics: dict[str, deque[float]] = {
            name: deque(maxlen=KEPT_READINGS) for name in ("cpu", "memory")
        }

    def observe(self) -> None:
        """Take a reading, in percent."""
        self._metrics["cpu"].append(psutil.cpu_percent())
        self._metrics["memory"].append(psutil.virtual_memory().percent)


class MettaTrainer:
    """Sixteen foragers in two child processes learn with one recurrent policy.

    Args:
        seed: of the environments and the network.
        rate: steps of all environments together per second at most; None for as fast as it goes.
        tracking: the original's options of memory tracking.
        profiled: whether torch's profiler runs now and then, in one call of the policy.

    """

    def __init__(
        self,
        seed: int = 0,
        rate: float | None = 50.0,
        tracking: MemoryTracking | None = None,
        profiled: bool = False,
    ) -> None:
        torch.manual_seed(seed)
        self.environments = VectorEnvironments(WORKERS, EACH, seed)
        self.experience = Experience(self.environments.count)
        self.policy = Policy()
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=3e-4)
        silent = torch.zeros(self.environments.count, HIDDEN)
        self.lstm_states: dict[str, State] = {"live": (silent, silent.clone())}
        self.stats: dict[str, list[float]] = {}
        self.losses: deque[Losses] = deque(maxlen=1000)
        self.evals: list[dict[str, Any]] = []
        self.policy_store: list[dict[str, Any]] = []
        self.curriculum: dict[str, float] = {}  # how well each task is mastered
        self.system_monitor = SystemMonitor()
        self.wandb_run: Any = _active_run()
        self.torch_profiler: list[tuple[str, int, float]] | None = [] if profiled else None
        self.tracking = tracking or MemoryTracking()
        self._rate = Rate(rate)
        self.leaks = Leaks(LeakSwitches(leak_file("metta_ppo"), LEAKS, self._rate.clock))
        self.steps = 0
        self.epochs = 0
        self._observations = torch.from_numpy(self.environments.reset())

    @contextmanager
    def watched(self, served: Served) -> Iterator[heapwatch.Watch]:
        """Have this trainer watched for as long as the context lasts, if it is to be watched."""
        if not self.tracking.memory_tracking_enabled:
            yield heapwatch.Watch("metta_ppo")  # serves nothing, samples nothing
            return
        with heapwatch.start("metta_ppo", **served, profile=profile("metta"), framework="torch") as watch:
            watch.root = self
            for name in (*WATCHED, *(name for name in OPTIONAL if getattr(self, name) is not None)):
                watch.size(name, name.removeprefix("trainer."))
            watch.size("policy.state_dict", self.policy.state_dict)
            watch.size("optimizer.state_dict", self.optimizer.state_dict)
            watch.growth_limit("object_size", per_epoch=1e6 * self.tracking.memory_leak_threshold_mb)
            watch.size_interval(MEASURE_EVERY)
            watch.memory_report_interval(self.tracking.memory_report_interval, "epoch")
            watch.on_cleanup(self.clean)
            if self.wandb_run is not None:
                log_memory(watch, self.wandb_run)
            yield watch

    def train(self, watch: heapwatch.Watch, steps: int | None = None) -> None:
        """Train for about `steps` steps (whole epochs), or for ever."""
        while steps is None or self.steps < steps:
            with watch.phase("rollout"):
                last_value = self.rollout(watch)
            with watch.phase("train"):
                self.losses.append(update(self.policy, self.optimizer, self.experience, last_value))
            self.epochs += 1
            if self.epochs % EVALUATE_EVERY == 0:
                with watch.phase("evaluate"):
                    self.evaluate()
            if self.wandb_run is not None:
                self.wandb_run.log({"reward": self.stats["reward"][0]})
            watch.progress("epoch")

    @torch.no_grad()
    def rollout(self, watch: heapwatch.Watch) -> torch.Tensor:
        """Fill the experience; returns the value of what comes next, shape (environments,)."""
        experience, state = self.experience, self.lstm_states["live"]
        for step in range(HORIZON):
            experience.obs[step] = self._observations
            experience.lstm_h[step], experience.lstm_c[step] = state
            logits, values, state = self.policy(self._observations, state)
            chosen = torch.distributions.Categorical(logits=logits)
            actions = chosen.sample()  # type: ignore[no-untyped-call]
            answer = self.environments.step(actions.numpy())
            going_on = torch.from_numpy(~answer.dones).float().unsqueeze(1)
            state = (state[0] * going_on, state[1] * going_on)
            experience.actions[step] = actions
            experience.logprobs[step] = chosen.log_prob(actions)  # type: ignore[no-untyped-call]
            experience.values[step] = values
            experience.rewards[step] = torch.from_numpy(answer.rewards)
            experience.dones[step] = torch.from_numpy(answer.dones).float()
            self._observations = torch.from_numpy(answer.observations)
            self.steps += 1
            self.leaks.step(self)
            watch.step()
            self._rate.wait()
        self.lstm_states["live"] = state
        self.system_monitor.observe()
        self.stats["reward"] = [float(experience.rewards.mean())]
        with self._profiled():
            last_value: torch.Tensor = self.policy(self._observations, state)[1]
        return last_value

    @contextmanager
    def _profiled(self) -> Iterator[None]:
        """Torch's profiler now and then, if it was asked for; kept are operations, calls and microseconds."""
        if self.torch_profiler is None or (self.epochs + 1) % PROFILE_EVERY:
            yield
            return
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            yield
        averages = profiler.key_averages()
        self.torch_profiler = [(one.key, one.count, one.cpu_time_total) for one in averages]

    def evaluate(self) -> None:
        """Note how the policy does, and store it beside the few before it."""
        self.curriculum["forage"] = self.stats["reward"][0]
        self.evals.append({"epoch": self.epochs, "reward": self.stats["reward"][0]})
        self.policy_store.append(copy.deepcopy(self.policy.state_dict()))
        if len(self.evals) > KEPT_EVALS:
            del self.evals[0]
        if len(self.policy_store) > STORED_POLICIES:
            del self.policy_store[0]

    def clean(self, action: str) -> dict[str, int]:
        """Keep what training needs of the statistics, evaluations, stored policies and LSTM states."""
        removed = {
            "stats": len(self.stats) - 1,
            "evals": max(len(self.evals) - KEPT_EVALS, 0),
            "policies": max(len(self.policy_store) - STORED_POLICIES, 0),
            "lstm_states": len(self.lstm_states) - 1,
        }
        self.stats = {"reward": self.stats["reward"]} if "reward" in self.stats else {}
        del self.evals[:-KEPT_EVALS]
        del self.policy_store[:-STORED_POLICIES]
        self.lstm_states = {"live": self.lstm_states["live"]}
        return removed


def _active_run() -> Any:
    """The active run, or a new one where the environment has WANDB_PROJECT or WANDB_RUN_ID; else None."""
    run = getattr(sys.modules.get("wandb"), "run", None)
    if run is None and {"WANDB_PROJECT", "WANDB_RUN_ID"} & os.environ.keys():
        import wandb  # a trainer that does not log needs no Weights & Biases

        run = wandb.init()
    return run
