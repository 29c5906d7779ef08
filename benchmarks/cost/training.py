"""What Stable-Baselines3's DQN pays for being watched, with everything on.

What is measured is the callback that is shipped, `HeapwatchCallback`, as a user passes it to `learn`; the
baseline is an empty callback, since any callback pays for being called. Blocks of steps with the one and
with the other take turns inside one training run, so that other load on the machine and the learning itself
fall on both alike. Time is the CPU's, of all threads of the process: wall time on a shared machine tells of
the neighbours, and even so a block is now and then held up for longer than anything here costs. Each pair of
neighbouring blocks gives one ratio; the slowdown is their geometric mean, as the arithmetic mean of ratios
of two noisy numbers is above one even where both are alike (P. J. Fleming and J. J. Wallace, How not to lie
with statistics, 1986). The tenth that is highest and the tenth that is lowest do not count (a trimmed mean:
J. W. Tukey, A Survey of Sampling from Contaminated Distributions, 1960), and the interval comes from
resampling the pairs (percentile bootstrap, B. Efron and R. J. Tibshirani, An Introduction to the Bootstrap,
1993, chapter 13).

Samples come in a few blocks only, which trimming would drop: what they take is clocked by itself, taken off
its block, and added as a share of the run; and so is what the exporter's own threads use, scrapes among them,
which falls on both kinds of block. In the first two minutes, when everything is seen for the first time,
samples and threads use more, once: that has a row of its own, and the blocks come after it. What the
exporter's presence costs both kinds of block alike, such as where its memory lies, is not seen.
"""

from __future__ import annotations

import contextlib
import logging
import math
import random
import statistics
import subprocess
import sys
import threading
import time
from collections import deque
from typing import Any, NamedTuple

import psutil
import torch

import heapwatch
from benchmarks.cost.turns import paired_blocks
from benchmarks.measure import Claim, Report, Table
from heapwatch.integrations.stable_baselines3 import HeapwatchCallback
from heapwatch.runtime.safe_point import Sampler

Pair = tuple[float, float]  # CPU seconds of a block with what is measured, and of its neighbour without

START_SECONDS = 120
_PAIRS = 8000
_TRIMMED = 0.1
_SCRAPE_SECONDS = 15.0
# Detaches itself: a child would be read as the trainer's worker with each scrape. Prints its process id.
_SCRAPER = """
import contextlib, os, sys, time, urllib.request
if child := os.fork():
    print(child)
    sys.exit()
os.close(1)
with contextlib.suppress(OSError):  # the trainer has ended
    while True:
        urllib.request.urlopen(sys.argv[1]).read()
        time.sleep(float(sys.argv[2]))
"""


def run() -> Report:
    columns = "what is called at each step | slowdown | 95 % interval | pairs"
    table = Table("SB3 DQN: slowdown in CPU time", columns)
    pairs, samples, threads, at_start = watched_blocks(_PAIRS)
    shares = confidence(pairs)
    slowdown, low, high = (share + samples + threads for share in shares)
    own, own_low, own_high = (f"{share:+.2%}" for share in shares)
    once = f"{at_start:.2f} s of CPU time, once"
    table.rows += [
        ["heapwatch's callback with everything on", own, f"{own_low} to {own_high}", str(len(pairs))],
        ["its samples", f"{samples:+.2%}", "", ""],
        [f"its threads, scraped every {_SCRAPE_SECONDS:.0f} s", f"{threads:+.2%}", "", ""],
        [f"samples and threads in the first {START_SECONDS} s", once, "", ""],
    ]
    measured = f"{slowdown:+.2%} (95 % interval {low:+.2%} to {high:+.2%}, {len(pairs)} pairs)"
    measured += f", and {once} in the first {START_SECONDS} s"
    claim = Claim("SB3 DQN with everything on is slowed by less than 1 %", measured, high < 0.01)
    return Report([table], [claim])


class Blocks(NamedTuple):
    """The pairs, the shares of samples and threads in the run, and their CPU seconds in its first minutes."""

    pairs: list[Pair]
    samples: float
    threads: float
    at_start: float


def watched_blocks(pairs: int, device: str = "cpu") -> Blocks:
    with Watched() as watched:
        readings = [watched.spent()]
        found = paired_blocks(
            HeapwatchCallback(watched.watch),
            pairs,
            prepare=watched.declare,
            apart=lambda: watched.sampling,
            warm_up_seconds=START_SECONDS,
            on_warm=lambda: readings.append(watched.spent()),
            device=device,
        )
        begun, warm, ended = *readings, watched.spent()
    spent = ended.process - warm.process
    return Blocks(
        found,
        (ended.samples - warm.samples) / spent,
        (ended.threads - warm.threads) / spent,
        warm.samples + warm.threads - begun.samples - begun.threads,
    )


class Spent(NamedTuple):
    """CPU seconds so far: of the process, of the samples, and of Python threads beside the calling one."""

    process: float
    samples: float
    threads: float


class Watched:
    """The exporter with all that it can watch, scraped as Prometheus would.

    Attributes:
        sampling: CPU seconds that samples took in the training thread.

    """

    def __init__(self) -> None:
        logging.getLogger("heapwatch").setLevel(logging.ERROR)
        self.watch = heapwatch.start("benchmark", port=0)
        self.deaths: deque[dict[str, float]] = deque(maxlen=1000)
        self.sampling = 0.0
        self._clock_samples()
        url = f"http://127.0.0.1:{self.watch.port}/metrics"
        command = [sys.executable, "-c", _SCRAPER, url, str(_SCRAPE_SECONDS)]
        self._scraper = psutil.Process(int(subprocess.check_output(command)))

    def declare(self, model: Any) -> None:
        """Watch what a DQN trainer has, beside what the callback declares."""
        watch = self.watch
        watch.events("death", self.deaths)
        watch.entities("food_sources", self.deaths)
        watch.size("policy", model.policy)
        watch.objects(torch.Tensor, type(model.policy))
        watch.limit("memory", warning=4e9)

    def spent(self) -> Spent:
        """What was used up to now; to be called in the training thread."""
        process = time.process_time()
        return Spent(process, self.sampling, process - time.thread_time() - _of_native_threads())

    def _clock_samples(self) -> None:
        point = self.watch.exporter.safe_point
        visit = point.visit

        def clocked(*, stepping: bool, at_once: Sampler | None = None) -> None:
            began = time.thread_time()
            visit(stepping=stepping, at_once=at_once)
            self.sampling += time.thread_time() - began

        point.visit = clocked  # type: ignore[method-assign]

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            self._scraper.kill()
        self.watch.stop()


def _of_native_threads() -> float:
    """CPU seconds of the threads that are not Python's: on a GPU, torch computes gradients in one."""
    ours = {thread.native_id for thread in threading.enumerate()}
    others = [thread for thread in psutil.Process().threads() if thread.id not in ours]
    return sum(thread.user_time + thread.system_time for thread in others)


def confidence(pairs: list[Pair]) -> tuple[float, float, float]:
    """The slowdown, and the interval that holds 95 % of those of resampled pairs."""
    generator = random.Random(7)
    ratios = [math.log(with_it / without) for with_it, without in pairs]
    resampled = sorted(trimmed_mean(generator.choices(ratios, k=len(ratios))) for _ in range(1000))
    return math.expm1(trimmed_mean(ratios)), math.expm1(resampled[25]), math.expm1(resampled[974])


def trimmed_mean(values: list[float]) -> float:
    """The mean without the tenth that is highest and the tenth that is lowest."""
    trimmed = int(_TRIMMED * len(values))
    return statistics.fmean(sorted(values)[trimmed : len(values) - trimmed])
