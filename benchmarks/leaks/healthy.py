"""Trainers that do not leak, whatever their curves look like: each function adds one habit to a trace."""

from __future__ import annotations

import numpy as np

from benchmarks.leaks.trace import Signal, Trace


def steady(t: Trace) -> None:
    """Nothing but noise."""


def warm_up(t: Trace) -> None:
    """Fragmentation or a cache that levels off, sometimes slowly."""
    t.resident += t.approach(t.base * t.uniform(0.05, 0.6), t.uniform(5, 30))


def slowing_growth(t: Trace) -> None:
    """Logarithmic growth: every doubling of the run's age adds the same again."""
    t.resident += t.logarithmic(t.base * t.uniform(0.01, 0.06), t.uniform(1, 5))


def second_warm_up(t: Trace) -> None:
    """Something new is loaded in mid-run: a step, then an approach to a new plateau."""
    start = t.uniform(30, 120)
    t.resident += t.approach(t.base * t.uniform(0.05, 0.4), t.uniform(2, 8), start)
    t.resident += np.where(start < t.time, t.base * t.uniform(0, 0.3), 0)


def phase_sawtooth(t: Trace) -> None:
    """Each generation's rollouts pile up and go."""
    t.resident += t.sawtooth(t.base * t.uniform(0.05, 0.8), t.generation)


def slow_oscillation(t: Trace) -> None:
    """A curriculum that comes and goes every hour or two."""
    t.resident += t.wave(t.base * t.uniform(0.005, 0.02), t.uniform(60, 120), t.uniform(0, 1))


def evaluation(t: Trace) -> None:
    """An evaluation every half hour or so takes memory and gives it back."""
    t.resident += t.bumps(t.base * t.uniform(0.1, 1.0), t.uniform(20, 40), t.uniform(2, 9), t.uniform(0, 40))


def startup_peak(t: Trace) -> None:
    """Loading takes twice what training needs."""
    t.resident += np.where(t.uniform(4, 12) > t.time, t.base * t.uniform(0.3, 1.0), 0)


def step(t: Trace) -> None:
    """One or two things are loaded once."""
    for _ in range(int(t.rng.integers(1, 3))):
        t.resident += np.where(t.uniform(20, 220) < t.time, t.base * t.uniform(0.1, 1.5), 0)


def dataset_cache(t: Trace) -> None:
    """A cache that fills as random items are met for the first time."""
    t.resident += t.approach(t.base * t.uniform(0.2, 1.0), t.uniform(5, 25))


def lazy_buffer(t: Trace, overhead: float = 0.0) -> None:
    """A preallocated replay buffer whose pages become resident as it fills."""
    size, full = t.log_uniform(0.5e9, 12e9), t.uniform(30, 200)
    held = np.minimum(t.ramp(0, size / full), size)
    t.resident += held * (1 + overhead)
    _declare(t, held, size)


def underestimated_buffer(t: Trace) -> None:
    """The buffer's true cost is up to 12 % above what is counted."""
    lazy_buffer(t, overhead=t.uniform(0.03, 0.12))


def overestimated_buffer(t: Trace) -> None:
    """Shared storage counted twice: the buffer holds less than it says."""
    lazy_buffer(t, overhead=-t.uniform(0.1, 0.5))


def eager_buffer(t: Trace) -> None:
    """A buffer that was touched in full when it was made."""
    size, full = t.log_uniform(0.5e9, 12e9), t.uniform(30, 200)
    t.resident += size
    _declare(t, np.minimum(t.ramp(0, size / full), size), size)


def restarts(t: Trace) -> None:
    """The trainer starts anew, more than once."""
    t.restarts = [t.uniform(30, 70) + 60 * i for i in range(int(t.rng.integers(1, 4)))]


def episode_bodies(t: Trace) -> None:
    """Bodies pile up over an episode and are cleared at its end."""
    period, many = t.uniform(1, 20), t.uniform(20, 120)
    t.count('trainer_bodies{type="static"}', 1 + t.sawtooth(many, period))
    t.count('trainer_bodies{type="dynamic"}', t.uniform(80, 200) + t.drift(t.uniform(1, 4), 5))
    t.count('trainer_bodies{type="unknown"}', np.zeros(t.time.size))
    food = t.uniform(6, 12) + t.drift(2, 0.3) + t.wave(t.uniform(2, 8), t.uniform(15, 50), t.uniform(0, 1))
    t.count('trainer_entities{type="food_sources"}', food)


def population(t: Trace) -> None:
    """Agents are doubled for a moment at each generation; tensors come and go."""
    doubled = t.bumps(16, t.generation, 0.5)
    t.count('trainer_objects{type="DDPGAgent"}', 17 + doubled)
    t.resident += doubled / 16 * t.base * 0.3
    t.count(
        'trainer_objects{type="Tensor"}',
        t.uniform(500, 2000) + t.sawtooth(200, t.generation) + t.drift(30, t.uniform(0.3, 20)),
    )


def bounded_lists(t: Trace) -> None:
    """One list fills to its declared end, another is trimmed now and then."""
    size = t.uniform(500, 5000)
    t.count('trainer_event_list_items{list="death"}', np.minimum(t.ramp(0, size / t.uniform(20, 200)), size))
    t.series['trainer_event_list_capacity_items{list="death"}'] = np.full(t.time.size, round(size))
    t.count('trainer_event_list_items{list="consumption"}', t.sawtooth(t.uniform(50, 500), t.uniform(4, 18)))


def worker_shifts(t: Trace) -> None:
    """Half of the worker processes rest for an hour or two and come back."""
    each = t.log_uniform(0.1e9, 1e9)
    rests = t.bumps(1, t.uniform(90, 180), t.uniform(30, 80), t.uniform(0, 180)) > 0
    workers = np.where(rests, 4, 8).astype(float)
    t.series['trainer_process_resident_memory_bytes{role="worker"}'] = np.round(
        workers * (each + t.approach(each * 0.2, t.uniform(2, 8)) + t.drift(each * 0.002, 3))
    )
    t.series['trainer_processes{role="worker"}'] = workers


def gpu_cache(t: Trace) -> None:
    """The allocator's reserve grows to what the largest batch needed; the live bytes swing."""
    live = t.log_uniform(1e9, 30e9)
    warm = t.approach(1, t.uniform(1, 15))
    allocated = live * warm * (1 + t.rng.normal(0, t.uniform(0.002, 0.02), t.time.size))
    t.count('trainer_gpu_memory_allocated_bytes{device="0"}', allocated)
    t.count('trainer_gpu_memory_reserved_bytes{device="0"}', np.maximum.accumulate(allocated) * 1.2)


def named_objects(t: Trace) -> None:
    """Weights stay, the optimizer's state appears once, statistics grow by kilobytes."""
    t.series['trainer_object_size_bytes{object="policy.state_dict"}'] = np.full(t.time.size, 45e6)
    t.series['trainer_object_size_bytes{object="optimizer.state_dict"}'] = t.ramp(1, 1e12).clip(max=90e6)
    t.series['trainer_object_size_bytes{object="trainer.stats"}'] = np.round(
        2e5 + t.ramp(0, t.uniform(5e3, 5e4))
    )
    t.series['trainer_progress_total{unit="epoch"}'] = np.floor(t.time * 1.4)


def undeclared_array(t: Trace) -> None:
    """A preallocated `np.zeros` that nobody declared: its pages become resident as it fills."""
    size = t.base * t.log_uniform(0.2, 3)
    touched = np.minimum(t.ramp(t.uniform(0, 5), size / t.uniform(20, 400)), size)
    t.resident += touched
    t.untouched += size - touched
    t.maps = True


def ramped_evaluation(t: Trace) -> None:
    """Every half hour or so, rollouts of an evaluation pile up for minutes, and are freed."""
    period, length = t.uniform(20, 40), t.uniform(2, 5)
    into = (t.time + t.uniform(0, period)) % period
    t.resident += np.where(into < length, t.base * t.uniform(0.05, 0.5) * into / length, 0)


def checkpoint_spikes(t: Trace) -> None:
    """Saving takes a copy of the weights for some seconds."""
    t.resident += t.bumps(t.base * t.uniform(0.1, 1.0), t.uniform(5, 30), t.uniform(0.3, 1.5))


def growing_population(t: Trace) -> None:
    """Each generation adds agents until there are as many as are wanted."""
    generations, start = int(t.rng.integers(2, 5)), t.uniform(0, 3)
    grown = np.minimum(t.stairs(start, t.generation, 1), generations) * (t.time > start)
    t.count('trainer_objects{type="DDPGAgent"}', 8 + 8 * grown)
    t.resident += grown * t.base * t.uniform(0.02, 0.2)


def new_shapes(t: Trace) -> None:
    """A cache keeps workspace for each shape of a batch that it meets; new ones become rare."""
    known = t.rng.random(t.time.size) < 0.2 / (1 + t.time / t.uniform(2, 10))
    t.resident += np.cumsum(known * t.rng.exponential(t.base * 0.02, t.time.size))


def fragmentation(t: Trace) -> None:
    """Malloc keeps more and more of what is freed, and no more at last."""
    kept = t.approach(t.base * t.uniform(0.1, 0.8), t.uniform(5, 60))
    t.allocator(kept)
    t.resident += kept


def many_workers(t: Trace) -> None:
    """Up to 64 environments in processes of their own, started one after the other."""
    many, each = int(t.rng.integers(8, 65)), t.log_uniform(0.05e9, 0.4e9)
    started = np.minimum(np.floor(t.ramp(0.5, many / t.uniform(0.5, 4))), many)
    t.series['trainer_process_resident_memory_bytes{role="worker"}'] = np.round(
        started * each + t.drift(each * many * t.log_uniform(1e-4, 3e-3), 5)
    )
    t.series['trainer_processes{role="worker"}'] = started


def checkpoint_restart(t: Trace) -> None:
    """It goes on from a checkpoint after a restart: loading takes twice what training needs."""
    t.restarts = [t.uniform(40, 150)]
    t.resident += np.where(t.uniform(1, 4) > t.time, t.base * t.uniform(0.3, 1.0), 0)


def curriculum(t: Trace) -> None:
    """Harder levels need more, each a little less in addition, until the last."""
    levels, every = int(t.rng.integers(2, 7)), t.uniform(12, 40)
    size = t.base * t.uniform(0.02, 0.2)
    for level in range(levels):
        t.resident += t.approach(size * 0.7**level, t.uniform(0.2, 3), every * (level + 1))


def short_run(t: Trace) -> None:
    """A debugging run of ten minutes: hardly more than its start."""
    warm_up(t)


def short_run_of_episodes(t: Trace) -> None:
    """Ten minutes of short episodes, and a list that is cut every so often."""
    length = t.uniform(0.05, 0.8)
    t.series['trainer_progress_total{unit="episode"}'] = np.floor(t.time / length)
    t.count(
        'trainer_event_list_items{list="returns"}',
        np.floor(t.time / length) % max(1, round(t.uniform(1, 3) / length)),
    )
    t.generation = t.uniform(0.5, 2)


def rarely_counted(t: Trace) -> None:
    """Counts are read every minute or five, and say how old they are."""
    bodies = t.uniform(80, 3000) + t.sawtooth(t.uniform(20, 400), t.uniform(1, 20)) + t.drift(3, 5)
    t.count('trainer_bodies{type="dynamic"}', t.read_every(t.uniform(1, 5), "bodies", bodies))


def _declare(t: Trace, held: Signal, size: float) -> None:
    """A bounded buffer's four series."""
    item = t.log_uniform(1e3, 1e6)
    label = f'{{buffer="replay{len(t.series) or ""}"}}'
    t.series["trainer_buffer_bytes" + label] = np.round(held)
    t.series["trainer_buffer_capacity_bytes" + label] = np.full(t.time.size, round(size))
    t.count("trainer_buffer_items" + label, held / item)
    t.series["trainer_buffer_capacity_items" + label] = np.full(t.time.size, round(size / item))


HABITS = {
    f.__name__: f
    for f in (
        steady, warm_up, slowing_growth, second_warm_up, phase_sawtooth, slow_oscillation, evaluation,
        startup_peak, step, dataset_cache, lazy_buffer, underestimated_buffer, overestimated_buffer,
        eager_buffer, restarts, episode_bodies, population, bounded_lists, worker_shifts, gpu_cache,
        named_objects, undeclared_array, ramped_evaluation, checkpoint_spikes, growing_population, new_shapes,
        fragmentation, many_workers, checkpoint_restart, curriculum, short_run,
        short_run_of_episodes, rarely_counted,
    )
}  # fmt: skip
# Minutes, of those that do not run for four hours.
LENGTHS = {"short_run": 10, "short_run_of_episodes": 12}
