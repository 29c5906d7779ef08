"""Stable-Baselines3's DQN with everything on, beside what else one might call in a training loop.

Blocks of steps with and without take turns inside one training run, so that the machine's moods and the
learning itself fall on both alike. Samples that are due wait for a block with, which is half of the time:
they are asked for half as often, so that a block with holds what it would hold if all were with. What the
exporter's own threads use falls on both kinds of block, and is added; `processes` looks for what else might.
Time is the CPU's, of all threads of the process: wall time on a shared machine tells of the neighbours. Each
pair of neighbouring blocks gives one ratio; the slowdown is that of all blocks together, and its interval
comes from resampling the pairs (percentile bootstrap, B. Efron and R. J. Tibshirani, An Introduction to the
Bootstrap, 1993, chapter 13).
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import random
import tempfile
import time
import tracemalloc
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import heapwatch
import psutil
import torch
from heapwatch.safepoint import DEFAULT_BUDGET, DEFAULT_INTERVAL
from prometheus_client import CollectorRegistry, Counter

from benchmarks.measure import Claim, Peers, Report, Table
from benchmarks.snapshots import erl_snapshot

Pair = tuple[float, float]  # CPU seconds of a block with what is measured, and of its neighbour without

_BLOCK_STEPS = 100
_WARM_UP_STEPS = 3000  # and the first sample of everything
_PAIRS = int(os.environ.get("HEAPWATCH_BENCH_PAIRS", "6000"))
_PEER_PAIRS = 40
_SCRAPE_SECONDS = 15.0
_PHASE_STEPS = 200


def run() -> Report:
    peers = Peers()
    if not (peers.load("stable_baselines3") and peers.load("gymnasium")):
        return Report([], [Claim("SB3 DQN is slowed by less than 1 %", "not measured", False)], peers.missing)
    torch.set_num_threads(1)
    columns = ["what is called at each step", "slowdown", "95 % interval", "pairs"]
    table = Table("SB3 DQN: slowdown in CPU time", columns)
    with Watched() as watched:
        began, threads_began = time.process_time(), _cpu_of_other_threads()
        pairs = paired_blocks(watched.step, _PAIRS, prepare=watched.declare)
        threads = (_cpu_of_other_threads() - threads_began) / (time.process_time() - began)
    slowdown, low, high = (share + threads for share in confidence(pairs))
    table.rows.append(_row("heapwatch, everything on, scraped", pairs))
    table.rows.append(["and in threads of its own", f"{threads:+.2%}", "", ""])
    for name, step in other_tools(peers).items():
        table.rows.append(_row(name, paired_blocks(step, _PEER_PAIRS)))
    for name, tracer in tracers(peers).items():
        table.rows.append(_row(name, paired_blocks(lambda: None, 4, during=tracer, block_steps=1000)))
    measured = (
        f"{slowdown:+.2%}, {threads:.2%} of it in threads of its own "
        f"(95 % interval {low:+.2%} to {high:+.2%}, {len(pairs)} pairs)"
    )
    claim = Claim("SB3 DQN with everything on is slowed by less than 1 %", measured, high < 0.01)
    return Report([table], [claim], peers.missing)


class Watched:
    """The exporter with all that it can watch, scraped as Prometheus would.

    Args:
        rarer: asks for samples and scrapes that many times more rarely, for a trainer that runs, or is
            measured, in so much of the time only.

    """

    def __init__(self, rarer: int = 2) -> None:
        logging.getLogger("heapwatch").setLevel(logging.ERROR)
        self.watch = heapwatch.start(
            "benchmark", port=0, interval=DEFAULT_INTERVAL * rarer, budget=DEFAULT_BUDGET / rarer
        )
        self.deaths: deque[dict[str, float]] = deque(maxlen=1000)
        self._scrape_seconds = _SCRAPE_SECONDS * rarer
        self._scrape_at = 0.0
        self._steps = 0

    def declare(self, model: Any) -> None:
        """Watch what a DQN trainer has."""
        watch = self.watch
        watch.buffer("replay", model.replay_buffer)
        watch.events("death", self.deaths)
        watch.entities("food_sources", self.deaths)
        watch.size("policy", model.policy)
        watch.size("policy.state_dict", model.policy.state_dict)
        watch.objects(torch.Tensor, type(model.policy))
        watch.limit("memory", warning=4e9)

    def step(self) -> None:
        """A step; a phase of 200 steps ends now and then, and so comes a scrape."""
        self.watch.step()
        self._steps += 1
        if self._steps % _PHASE_STEPS == 0:
            with self.watch.phase("train"):
                pass
        if time.monotonic() >= self._scrape_at:
            self._scrape_at = time.monotonic() + self._scrape_seconds
            urllib.request.urlopen(f"http://127.0.0.1:{self.watch.port}/metrics").read()

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self.watch.stop()


def paired_blocks(
    step: Callable[[], None],
    pairs: int,
    *,
    prepare: Callable[[Any], None] = lambda model: None,
    during: Callable[[], AbstractContextManager[object]] = nullcontext,
    block_steps: int = _BLOCK_STEPS,
) -> list[Pair]:
    """CPU time of blocks with `step`, run inside `during`, each beside its neighbour without."""
    from stable_baselines3 import DQN
    from stable_baselines3.common.callbacks import BaseCallback

    blocks: dict[bool, list[float]] = {False: [], True: []}
    generator = random.Random(5)

    class TakeTurns(BaseCallback):
        def __init__(self) -> None:
            super().__init__()
            self.calls, self.began, self.order = -_WARM_UP_STEPS, 0.0, [False, True]
            self.entered = ExitStack()

        def _on_step(self) -> bool:
            if self.calls >= 0:
                half, at = divmod(self.calls % (2 * block_steps), block_steps)
                if at == 0:
                    self.entered.close()
                    now = time.process_time()
                    if self.calls:
                        blocks[self.order[1 - half]].append(now - self.began)
                    if half == 0:
                        generator.shuffle(self.order)
                    self.began = time.process_time()
                    if self.order[half]:
                        self.entered.enter_context(during())
            if self.calls < 0 or self.order[half]:
                step()
            self.calls += 1
            return len(blocks[True]) + len(blocks[False]) < 2 * pairs

    model = DQN(
        "MlpPolicy",
        "CartPole-v1",
        learning_starts=1000,
        buffer_size=50_000,
        train_freq=4,
        device="cpu",
        seed=1,
    )
    prepare(model)
    model.learn(10**9, callback=TakeTurns())
    return list(zip(blocks[True], blocks[False], strict=True))


def other_tools(peers: Peers) -> dict[str, Callable[[], None]]:
    """What people call at each step instead."""
    numbers = [0] * 10
    counter = Counter("calls", "", ["what"], registry=CollectorRegistry())
    process = psutil.Process()
    calls = [0]

    def ten_ints() -> None:
        for at in range(10):
            numbers[at] += 1

    def ten_labels() -> None:
        for at in range(10):
            counter.labels(str(at)).inc()

    def two_readings() -> None:
        process.memory_info()
        process.memory_info()

    def snapshots() -> None:
        calls[0] += 1
        if calls[0] % 1000 == 0:
            erl_snapshot()

    tools: dict[str, Callable[[], None]] = {
        "ten ints": ten_ints,
        "ten prometheus `labels().inc()`": ten_labels,
        "two psutil readings": two_readings,
        "the ERL document's snapshot, every 1000 steps": snapshots,
    }
    folder = Path(tempfile.mkdtemp(prefix="heapwatch-bench-"))
    if peers.load("tensorboard"):
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(str(folder))

        def ten_scalars() -> None:
            calls[0] += 1
            for at in range(10):
                writer.add_scalar(f"value/{at}", 1.0, calls[0])

        tools["TensorBoard, ten scalars"] = ten_scalars
    wandb = peers.load("wandb")
    if wandb:
        run = wandb.init(mode="offline", dir=str(folder), settings=wandb.Settings(silent=True))
        tools["wandb.log of ten values (offline)"] = lambda: run.log({f"value {at}": 1.0 for at in range(10)})
    return tools


def tracers(peers: Peers) -> dict[str, Callable[[], AbstractContextManager[object]]]:
    """Tools that look at every allocation while they are on."""

    @contextmanager
    def tracing() -> Iterator[None]:
        tracemalloc.start(1)
        yield
        tracemalloc.stop()

    found: dict[str, Callable[[], AbstractContextManager[object]]] = {"tracemalloc(1)": tracing}
    memray = peers.load("memray")
    if memray:
        folder = tempfile.mkdtemp(prefix="heapwatch-bench-")
        numbers = itertools.count()
        found["memray"] = lambda: memray.Tracker(f"{folder}/{next(numbers)}.bin")
    return found


def _cpu_of_other_threads() -> float:
    return time.process_time() - time.thread_time()


def confidence(pairs: list[Pair]) -> tuple[float, float, float]:
    """The slowdown, and the interval that holds 95 % of those of resampled pairs."""
    generator = random.Random(7)
    resampled = sorted(_slowdown(generator.choices(pairs, k=len(pairs))) for _ in range(2000))
    return _slowdown(pairs), resampled[50], resampled[1949]


def _slowdown(pairs: list[Pair]) -> float:
    return math.fsum(with_it for with_it, _ in pairs) / math.fsum(without for _, without in pairs) - 1


def _row(name: str, pairs: list[Pair]) -> list[str]:
    slowdown, low, high = confidence(pairs)
    return [name, f"{slowdown:+.2%}", f"{low:+.2%} to {high:+.2%}", str(len(pairs))]
