"""Whole trainers with and without the exporter, in processes that train in turns.

Blocks inside one process cannot show what the exporter's presence costs all of them: its threads, its
imports, where its memory lies. Here each party has processes of its own, which do one block of steps a turn,
so that the machine's moods fall on all alike. A process rests between its turns while samples and scrapes
come by the clock, so they are asked for as many times more rarely as there are processes: a step then meets
as many as in a trainer that never rests. What samples take is clocked by itself and added as a share, as in
`training`; what they leave of the caches shows in the steps.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.dqn import dqn
from benchmarks.measure import Peers, Report, Table

_BLOCK_STEPS = 200
_WARM_UP_STEPS = 3000
_TURNS = 250
_PARTIES = ("no other thread", "a thread that sleeps", "heapwatch, everything on")
_PROCESSES = 2 * _PARTIES


def run() -> Report:
    peers = Peers()
    if not (peers.load("stable_baselines3") and peers.load("gymnasium")):
        return Report([], [], peers.missing)
    from benchmarks.training import confidence

    blocks, samples = _take_turns()
    columns = ["a trainer with", "slowdown", "95 % interval", "turns"]
    table = Table("SB3 DQN: whole processes in turns, slowdown in CPU time", columns)
    for party in _PARTIES[1:]:
        pairs = list(zip(blocks[party], blocks[_PARTIES[0]], strict=True))
        share = samples[party] / sum(blocks[party])
        slowdown, low, high = (share + without for without in confidence(pairs))
        table.rows.append([party, f"{slowdown:+.2%}", f"{low:+.2%} to {high:+.2%}", str(_TURNS)])
    return Report([table], [], peers.missing)


def _take_turns() -> tuple[dict[str, list[float]], dict[str, float]]:
    """CPU seconds of each turn, of a party's processes together: of its blocks, and of all its samples."""
    pipe = subprocess.PIPE
    trainers = [
        (party, subprocess.Popen([sys.executable, "-m", __name__, party], stdin=pipe, stdout=pipe, text=True))
        for party in _PROCESSES
    ]
    for _, process in trainers:
        _answer(process)
    blocks = {party: [0.0] * _TURNS for party in _PARTIES}
    samples = dict.fromkeys(_PARTIES, 0.0)
    for turn in range(_TURNS):
        random.shuffle(trainers)
        for party, process in trainers:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
            block, sampling = _answer(process)
            blocks[party][turn] += block
            samples[party] += sampling
    for _, process in trainers:
        process.communicate()
    return blocks, samples


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

    model = dqn()
    step, clock = _prepare(party, model)

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

    model.learn(10**9, callback=OneBlockATurn())


def _prepare(party: str, model: Any) -> tuple[Callable[[], None], Callable[[], float]]:
    """What a step calls in a trainer of this party, and what tells the CPU seconds of its samples so far."""
    if party == _PARTIES[2]:
        from benchmarks.training import Watched

        watched = Watched(rarer=len(_PROCESSES))
        watched.declare(model)
        return watched.step, lambda: watched.sampling
    if party == _PARTIES[1]:
        import threading

        threading.Thread(target=threading.Event().wait, daemon=True).start()
    return lambda: None, lambda: 0.0


if __name__ == "__main__":
    _train(sys.argv[1])
