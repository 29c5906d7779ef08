"""Trainers that do not leak, whatever their curves look like: each function adds one habit to a trace."""

from __future__ import annotations

import numpy as np

from benchmarks.leaks.trace import (
    SAMPLES,
    TIME,
    Signal,
    Trace,
    approach,
    bumps,
    logarithmic,
    ramp,
    sawtooth,
    wave,
)


def steady(t: Trace) -> None:
    """Nothing but noise."""


def warm_up(t: Trace) -> None:
    """Fragmentation or a cache that levels off, sometimes slowly."""
    t.resident += approach(t.base * t.uniform(0.05, 0.6), t.uniform(5, 30))


def slowing_growth(t: Trace) -> None:
    """Logarithmic growth: every doubling of the run's age adds the same again."""
    t.resident += logarithmic(t.base * t.uniform(0.01, 0.06), t.uniform(1, 5))


def second_warm_up(t: Trace) -> None:
    """Something new is loaded in mid-run: a step, then an approach to a new plateau."""
    start = t.uniform(30, 120)
    t.resident += approach(t.base * t.uniform(0.05, 0.4), t.uniform(2, 8), start)
    t.resident += np.where(start < TIME, t.base * t.uniform(0, 0.3), 0)


def phase_sawtooth(t: Trace) -> None:
    """Each generation's rollouts pile up and go."""
    t.resident += sawtooth(t.base * t.uniform(0.05, 0.8), t.generation)


def slow_oscillation(t: Trace) -> None:
    """A curriculum that comes and goes every hour or two."""
    t.resident += wave(t.base * t.uniform(0.005, 0.02), t.uniform(60, 120), t.uniform(0, 1))


def evaluation(t: Trace) -> None:
    """An evaluation every half hour or so takes memory and gives it back."""
    t.resident += bumps(t.base * t.uniform(0.1, 1.0), t.uniform(20, 40), t.uniform(2, 9), t.uniform(0, 40))


def startup_peak(t: Trace) -> None:
    """Loading takes twice what training needs."""
    t.resident += np.where(t.uniform(4, 12) > TIME, t.base * t.uniform(0.3, 1.0), 0)


def step(t: Trace) -> None:
    """One or two things are loaded once."""
    for _ in range(int(t.rng.integers(1, 3))):
        t.resident += np.where(t.uniform(20, 220) < TIME, t.base * t.uniform(0.1, 1.5), 0)


def dataset_cache(t: Trace) -> None:
    """A cache that fills as random items are met for the first time."""
    t.resident += approach(t.base * t.uniform(0.2, 1.0), t.uniform(5, 25))


def lazy_buffer(t: Trace, overhead: float = 0.0) -> None:
    """A preallocated replay buffer whose pages become resident as it fills."""
    size, full = t.log_uniform(0.5e9, 12e9), t.uniform(30, 200)
    held = np.minimum(ramp(0, size / full), size)
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
    _declare(t, np.minimum(ramp(0, size / full), size), size)


def restarts(t: Trace) -> None:
    """The trainer starts anew, more than once."""
    t.restarts = [t.uniform(30, 70) + 60 * i for i in range(int(t.rng.integers(1, 4)))]


def episode_bodies(t: Trace) -> None:
    """Bodies pile up over an episode and are cleared at its end."""
    period, many = t.uniform(1, 20), t.uniform(20, 120)
    t.count('trainer_bodies{type="static"}', 1 + sawtooth(many, period))
    t.count('trainer_bodies{type="dynamic"}', t.uniform(80, 200) + t.drift(t.uniform(1, 4), 5))
    t.count('trainer_bodies{type="unknown"}', np.zeros(SAMPLES))
    food = t.uniform(6, 12) + t.drift(2, 0.3) + wave(t.uniform(2, 8), t.uniform(15, 50), t.uniform(0, 1))
    t.count('trainer_entities{type="food_sources"}', food)


def population(t: Trace) -> None:
    """Agents are doubled for a moment at each generation; tensors come and go."""
    doubled = bumps(16, t.generation, 0.5)
    t.count('trainer_objects{type="DDPGAgent"}', 17 + doubled)
    t.resident += doubled / 16 * t.base * 0.3
    t.count(
        'trainer_objects{type="Tensor"}',
        t.uniform(500, 2000) + sawtooth(200, t.generation) + t.drift(30, t.uniform(0.3, 20)),
    )


def bounded_lists(t: Trace) -> None:
    """One list fills to its declared end, another is trimmed now and then."""
    size = t.uniform(500, 5000)
    t.count('trainer_event_list_items{list="death"}', np.minimum(ramp(0, size / t.uniform(20, 200)), size))
    t.series['trainer_event_list_capacity_items{list="death"}'] = np.full(SAMPLES, round(size))
    t.count('trainer_event_list_items{list="consumption"}', sawtooth(t.uniform(50, 500), t.uniform(4, 18)))


def worker_shifts(t: Trace) -> None:
    """Half of the worker processes rest for an hour or two and come back."""
    each = t.log_uniform(0.1e9, 1e9)
    rests = bumps(1, t.uniform(90, 180), t.uniform(30, 80), t.uniform(0, 180)) > 0
    workers = np.where(rests, 4, 8).astype(float)
    t.series['trainer_process_resident_memory_bytes{role="worker"}'] = np.round(
        workers * (each + approach(each * 0.2, t.uniform(2, 8)) + t.drift(each * 0.002, 3))
    )
    t.series['trainer_processes{role="worker"}'] = workers


def gpu_cache(t: Trace) -> None:
    """The allocator's reserve grows to what the largest batch needed; the live bytes swing."""
    live = t.log_uniform(1e9, 30e9)
    warm = approach(1, t.uniform(1, 15))
    allocated = live * warm * (1 + t.rng.normal(0, t.uniform(0.002, 0.02), SAMPLES))
    t.count('trainer_gpu_memory_allocated_bytes{device="0"}', allocated)
    t.count('trainer_gpu_memory_reserved_bytes{device="0"}', np.maximum.accumulate(allocated) * 1.2)


def named_objects(t: Trace) -> None:
    """Weights stay, the optimizer's state appears once, statistics grow by kilobytes."""
    t.series['trainer_object_size_bytes{object="policy.state_dict"}'] = np.full(SAMPLES, 45e6)
    t.series['trainer_object_size_bytes{object="optimizer.state_dict"}'] = ramp(1, 1e12).clip(max=90e6)
    t.series['trainer_object_size_bytes{object="trainer.stats"}'] = np.round(
        2e5 + ramp(0, t.uniform(5e3, 5e4))
    )
    t.series['trainer_progress_total{unit="epoch"}'] = np.floor(TIME * 1.4)


def _declare(t: Trace, held: Signal, size: float) -> None:
    """A bounded buffer's four series."""
    item = t.log_uniform(1e3, 1e6)
    label = f'{{buffer="replay{len(t.series) or ""}"}}'
    t.series["trainer_buffer_bytes" + label] = np.round(held)
    t.series["trainer_buffer_capacity_bytes" + label] = np.full(SAMPLES, round(size))
    t.count("trainer_buffer_items" + label, held / item)
    t.series["trainer_buffer_capacity_items" + label] = np.full(SAMPLES, round(size / item))


HABITS = {
    f.__name__: f
    for f in (
        steady, warm_up, slowing_growth, second_warm_up, phase_sawtooth, slow_oscillation, evaluation,
        startup_peak, step, dataset_cache, lazy_buffer, underestimated_buffer, overestimated_buffer,
        eager_buffer, restarts, episode_bodies, population, bounded_lists, worker_shifts, gpu_cache,
        named_objects,
    )
}  # fmt: skip
