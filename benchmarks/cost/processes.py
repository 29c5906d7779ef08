"""Whole trainers with and without the exporter, in processes that train in turns.

Blocks inside one process cannot show what the exporter's presence costs all of them: its threads, its
imports, where its memory lies. Here each party has processes of its own, which do one block of steps a turn,
so that other load on the machine falls on all alike. A process waits between its turns while samples and
scrapes come by the clock, so they come as many times more rarely as there are processes. The turns of the
first two minutes do not count, and what samples take is clocked by itself and added as a share: see
`training`.

Two processes that run the same code differ by a percent from each other all their lives, by where their
memory happens to lie. So the interval is Student's of the means over processes; more turns would not make it
narrower.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from benchmarks.measure import Peers, Report, Table

_BLOCK_STEPS = 200
_WARM_UP_STEPS = 3000
_TURNS = 150
_EACH = 5  # processes of a party
_STUDENT = 2.306  # 97.5 % quantile for 2 * (_EACH - 1) degrees of freedom
_WITHOUT, _WITH = "nothing", "heapwatch, everything but phases"
_PROCESSES = _EACH * (_WITHOUT, _WITH)


def run() -> Report:
    peers = Peers()
    if not (peers.load("stable_baselines3") and peers.load("gymnasium")):
        return Report([], [], peers.missing)
    costs = _take_turns()
    slowdown = statistics.fmean(costs[_WITH]) / statistics.fmean(costs[_WITHOUT]) - 1
    error = sum(statistics.variance(cost) / _EACH for cost in costs.values()) ** 0.5
    interval = f"{slowdown - _STUDENT * error:+.2%} to {slowdown + _STUDENT * error:+.2%}"
    spread = statistics.stdev(costs[_WITHOUT])
    columns = "a trainer with | slowdown | 95 % interval | processes | standard deviation of a process"
    table = Table("SB3 DQN: whole processes, alternating, slowdown in CPU time", columns)
    table.rows.append([_WITH, f"{slowdown:+.2%}", interval, f"{_EACH} and {_EACH}", f"{spread:.2%}"])
    return Report([table], [], peers.missing)


def _take_turns() -> dict[str, list[float]]:
    """What steps cost in each process of a party, by the cost in the middle one of all in the same turn."""
    from benchmarks.cost.training import START_SECONDS, trimmed_mean

    trainers = list(enumerate(map(_start, _PROCESSES)))
    for _, process in trainers:
        _answer(process)
    blocks: list[list[float]] = [[] for _ in trainers]
    samples = [0.0 for _ in trainers]
    counted_from = time.monotonic() + START_SECONDS
    while len(blocks[0]) < _TURNS:
        random.shuffle(trainers)
        counts = time.monotonic() >= counted_from
        for number, process in trainers:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
            block, sampling = _answer(process)
            if counts:
                blocks[number].append(block)
                samples[number] += sampling
    for _, process in trainers:
        process.communicate()
    middle = [statistics.median(turn) for turn in zip(*blocks, strict=True)]
    costs: dict[str, list[float]] = {_WITHOUT: [], _WITH: []}
    for number, party in enumerate(_PROCESSES):
        alone = trimmed_mean([block / usual for block, usual in zip(blocks[number], middle, strict=True)])
        costs[party].append(alone + samples[number] / sum(blocks[number]))
    return costs


def _start(party: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", __name__, party]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _answer(process: subprocess.Popen[str]) -> tuple[float, float]:
    """CPU seconds of a block without its samples, and of these."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"a trainer ended early, with {process.wait()}")
    block, sampling = map(float, line.split())
    return block, sampling


def _train(party: str) -> None:
    """Train a block for each line read, and print what it took, until there is no line."""
    from stable_baselines3.common.callbacks import BaseCallback

    from benchmarks.cost.turns import dqn

    model, entered = dqn(), ExitStack()
    step, clock = _prepare(party, model, entered)

    class OneBlockATurn(BaseCallback):
        began, sampled = time.process_time(), 0.0

        def _on_step(self) -> bool:
            step()
            if self.n_calls >= _WARM_UP_STEPS and self.n_calls % _BLOCK_STEPS == 0:
                sampling = clock() - self.sampled
                print(time.process_time() - self.began - sampling, sampling, flush=True)
                if not sys.stdin.readline():
                    return False
                self.sampled, self.began = clock(), time.process_time()
            return True

    with entered:
        model.learn(10**9, callback=OneBlockATurn())


def _prepare(party: str, model: Any, entered: ExitStack) -> tuple[Callable[[], None], Callable[[], float]]:
    """What a step calls in a trainer of this party, and what tells the CPU seconds of its samples so far."""
    if party == _WITHOUT:
        return lambda: None, lambda: 0.0
    from benchmarks.cost.training import Watched

    watched = entered.enter_context(Watched(rarer=len(_PROCESSES)))
    watched.declare(model)
    return watched.watch.step, lambda: watched.sampling


if __name__ == "__main__":
    _train(sys.argv[1])
