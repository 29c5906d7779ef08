"""Hand-made runs."""

import random

from heapwatch.recording.points import Buffer, Point, Run

GB = 1e9
PHASES = ("evaluate_population", "train_population", "evolve_population")


def generations(count, *, environments=0, start=4.23 * GB, evaluation=0.0, other=0.0, **levels):
    """A run of the trading trainer: `environments` more and `evaluation` bytes more in each evaluation.

    `levels` are further fields of the points, given the generation (0 at the start).
    """
    first = {name: level(0) for name, level in levels.items()}
    points = [Point(0.0, "start", start, objects={"TradingEnvironment": 2, "DDPGAgent": 16}, **first)]
    resident, time = start, 0.0
    for generation in range(1, count + 1):
        objects = {"TradingEnvironment": 2 + environments * generation, "DDPGAgent": 16 + (generation > 1)}
        about = {"objects": objects, **{name: level(generation) for name, level in levels.items()}}
        for phase in PHASES:
            delta = evaluation if phase == "evaluate_population" else other
            resident, time = resident + delta, time + 60
            progress = {"generation": generation - 1, "episode": 16 * generation}
            points.append(
                Point(time, "phase", resident, phase, delta_bytes=delta, progress=progress, **about)
            )
        progress = {"generation": generation, "episode": 16 * generation}
        points.append(Point(time, "cycle", resident, progress=progress, **about))
    return Run("erl_trading", tuple(points))


def filled(nbytes, full_bytes):
    return {"replay": Buffer(nbytes, nbytes / 1e6, full_bytes)}


def on_a_busy_machine(
    seed, *, begins, count, kind="TradingEnvironment", of=2, made=30, leaking=39e6, phase=0
):
    """A run whose counts come once in two generations, or so, and are old in between.

    From generation `begins` on, phase number `phase` makes `made` objects of a class and takes `leaking`
    bytes; training takes 2 MB. Before, memory warms up; all the while it is noisy.
    """
    chance = random.Random(seed)
    alive = {"TradingEnvironment": 2, "DDPGAgent": 17, "Tensor": 280, "dict": 50_000}
    alive[kind] = of
    counted, counted_at, resident, time = dict(alive), dict.fromkeys(alive, 0.0), 0.36 * GB, 0.0
    points = [Point(0.0, "start", resident, objects=dict(counted), counted_at=counted_at)]
    for generation in range(1, count + 1):
        seconds = chance.choice((1.5, 3.0, 12.0))
        for number, name in enumerate(PHASES):
            delta = 40e6 / generation**2 + chance.gauss(0, 0.4e6) + (2e6 if number == 1 else 0)
            if number == phase and generation >= begins:
                alive[kind] += made
                alive["dict"] += 5 * made
                delta += leaking
            if kind != "Tensor":
                alive["Tensor"] = 280 + chance.randrange(25)
            time, resident = time + seconds, resident + delta
            if chance.random() < 0.2:
                counted = dict(alive)
                counted_at = dict.fromkeys(alive, time - chance.random() * seconds / 4)
            progress = {"generation": generation - 1}
            points.append(
                Point(
                    time,
                    "phase",
                    resident,
                    name,
                    delta,
                    progress=progress,
                    objects=counted,
                    counted_at=counted_at,
                )
            )
        progress = {"generation": generation}
        points.append(
            Point(time, "cycle", resident, progress=progress, objects=counted, counted_at=counted_at)
        )
    return Run("erl_trading", tuple(points))
