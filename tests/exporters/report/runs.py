"""Hand-made runs."""

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
