"""A day of training at full speed with the exporter: the memory must end where it ends without it.

`python -m benchmarks.soak [--steps N]`; a day at 30 steps a second is 2,592,000 steps. Each arm runs in a
process of its own. The watched arm is scraped as often as in a day (every 15 s); every ten minutes of it, it
cleans up and forks a worker. Half a day fills every bounded container: what grows after that is a leak.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import random
import sys
import tempfile
import urllib.request
from collections import deque
from dataclasses import dataclass

import heapwatch
from benchmarks.running import apart
from heapwatch.measure.process.memory import ResidentMemory
from heapwatch.measure.sizing.deep_size import deep_size

STEPS_PER_SECOND = 30
DAY_STEPS = 86_400 * STEPS_PER_SECOND
SCRAPE_STEPS = 15 * STEPS_PER_SECOND
CLEANUP_STEPS = 600 * STEPS_PER_SECOND
EPISODE_STEPS = 1000

ALLOWED_RESIDENT_BYTES = 3_000_000
ALLOWED_EXPORTER_BYTES = 20_000


@dataclass
class Outcome:
    """Resident bytes and the exporter's own, after half of the steps and at the end; what was done."""

    resident_half: int = 0
    resident_end: int = 0
    exporter_half: int = 0
    exporter_end: int = 0
    scrapes: int = 0
    samples: int = 0
    cleanups: int = 0
    workers: int = 0


class Robot:
    """Something that is born and dies."""

    def __init__(self) -> None:
        self.state = [random.random() for _ in range(8)]


class Trainer:
    """A healthy trainer: bounded containers that are filled, replaced and emptied."""

    def __init__(self) -> None:
        self.population = [Robot() for _ in range(30)]
        self.replay: deque[list[float]] = deque(maxlen=5000)
        self.deaths: deque[int] = deque(maxlen=500)
        self.food: list[int] = []
        self.policy = {f"layer {number}": [0.0] * 256 for number in range(8)}

    def step(self, number: int) -> None:
        """Move, eat, remember."""
        robot = self.population[number % 30]
        self.replay.append(robot.state)
        self.food.append(number)
        if len(self.food) > 15:
            self.food = self.food[8:]
        if number % EPISODE_STEPS == 0:
            self.population = [Robot() for _ in range(30)]
            self.deaths.extend(range(30))


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    options.add_argument("--steps", type=int, default=DAY_STEPS)
    steps = options.parse_args().steps
    print(f"training {steps:,} steps without the exporter, then with it", file=sys.stderr, flush=True)
    without, watched = apart(_train, steps, False), apart(_train, steps, True)
    _report(steps, without, watched)
    extra = (watched.resident_end - watched.resident_half) - (without.resident_end - without.resident_half)
    own = watched.exporter_end - watched.exporter_half
    print(f"grown more than without: {extra:,} bytes resident (allowed {ALLOWED_RESIDENT_BYTES:,})")
    print(f"the exporter's own objects: {own:+,} bytes (allowed {ALLOWED_EXPORTER_BYTES:,})")
    return 0 if extra <= ALLOWED_RESIDENT_BYTES and own <= ALLOWED_EXPORTER_BYTES else 1


def _train(steps: int, watched: bool) -> Outcome:
    with tempfile.TemporaryDirectory() as targets:
        os.environ["HEAPWATCH_TARGETS_DIR"] = targets
        return _trained(steps, watched)


def _trained(steps: int, watched: bool) -> Outcome:
    random.seed(0)
    trainer, outcome, memory = Trainer(), Outcome(), ResidentMemory()
    watch = _watch(trainer) if watched else None
    for number in range(1, steps + 1):
        if watch is None:
            trainer.step(number)
        else:
            with watch.phase("step"):
                trainer.step(number)
            watch.step()
            _occasionally(watch, number, outcome)
        if number == max(1, steps // 2):
            outcome.resident_half, outcome.exporter_half = _measure(memory, watch)
    outcome.resident_end, outcome.exporter_end = _measure(memory, watch)
    if watch is not None:
        outcome.samples = min(task.runs for task in watch._exporter.safe_point.tasks)
        watch.stop()
    return outcome


def _watch(trainer: Trainer) -> heapwatch.Watch:
    logging.getLogger("heapwatch").setLevel(logging.ERROR)
    # Samples that a day spreads over its hours come as fast as the steps do, so they may take what they need.
    watch = heapwatch.start("soak", port=0, interval=0.005, budget=1.0, walker_names=True)
    watch.entities("food_sources", lambda: trainer.food)
    watch.events("death", lambda: trainer.deaths)
    watch.buffer("replay", lambda: trainer.replay)
    watch.objects(Robot)
    watch.size("policy.state_dict", lambda: trainer.policy)
    watch.bodies(lambda: {"agent": len(trainer.population), "static": 1})
    watch.limit("memory", warning=1e9)

    @watch.on_cleanup
    def trim(action: str) -> dict[str, int]:
        removed = max(0, len(trainer.food) - 10)
        del trainer.food[10:]
        return {"food": removed}

    return watch


def _occasionally(watch: heapwatch.Watch, number: int, outcome: Outcome) -> None:
    if number % SCRAPE_STEPS == 0 and watch.server is not None:
        with urllib.request.urlopen(watch.server.url + "metrics", timeout=30) as response:
            response.read()
        outcome.scrapes += 1
    if number % CLEANUP_STEPS == 0:
        watch._exporter.cleanup_queue.submit(reason="soak", request_id=f"cleanup {number // CLEANUP_STEPS}")
        outcome.cleanups += 1
        child = os.fork()
        if child == 0:
            watch.step()
            os._exit(0)
        os.waitpid(child, 0)
        outcome.workers += 1
    if number % EPISODE_STEPS == 0:
        watch.progress("episode")


def _measure(memory: ResidentMemory, watch: heapwatch.Watch | None) -> tuple[int, int]:
    gc.collect()
    return memory.read(), 0 if watch is None else deep_size(watch._exporter, budget_seconds=60).bytes


def _report(steps: int, without: Outcome, watched: Outcome) -> None:
    print(f"{steps:,} steps, {steps / DAY_STEPS:.2f} days at {STEPS_PER_SECOND} a second")
    print(
        f"{watched.samples:,} samples of each source, {watched.scrapes:,} scrapes, "
        f"{watched.cleanups} cleanups, {watched.workers} workers"
    )
    print(f"{'':24}{'without':>16}{'with':>16}")
    for name in ("resident_half", "resident_end", "exporter_half", "exporter_end"):
        print(f"{name:24}{getattr(without, name):16,}{getattr(watched, name):16,}")


if __name__ == "__main__":
    sys.exit(main())
