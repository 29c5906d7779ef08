"""Leaks: each function adds one to a trace, over whatever healthy habits it has, and says so in its truth."""

from __future__ import annotations

import numpy as np

from benchmarks.leaks import healthy
from benchmarks.leaks.trace import Signal, Trace


def _rate(t: Trace) -> float:
    """Bytes per minute, from what a small trainer loses slowly to what kills in an hour."""
    return t.base * t.log_uniform(0.004, 0.05)


def _memory(t: Trace, growth: Signal, onset: float) -> None:
    t.resident += growth
    t.leak("memory", None, onset)


def linear(t: Trace) -> None:
    """The same bytes every minute."""
    onset = t.onset()
    _memory(t, t.ramp(onset, _rate(t)), onset)


def slow(t: Trace) -> None:
    """A few hundredths of the level an hour."""
    onset = t.onset(60)
    t.noise = min(t.noise, 1e-3)
    _memory(t, t.ramp(onset, t.base * t.uniform(0.0015, 0.004)), onset)


def late(t: Trace) -> None:
    """Hours of health first."""
    onset = t.uniform(120, 180)
    _memory(t, t.ramp(onset, _rate(t)), onset)


def accelerating(t: Trace) -> None:
    """Each leak makes the next one larger."""
    onset = t.onset(90)
    _memory(t, t.ramp(onset, _rate(t)) * (0.2 + t.ramp(onset, 1 / 90)), onset)


def slowing_trainer(t: Trace) -> None:
    """The leak is per step, and steps take longer as the run goes on."""
    onset = t.onset(60)
    _memory(t, 200 * _rate(t) * np.log1p(t.ramp(onset, 1 / 200)), onset)


def bursts(t: Trace) -> None:
    """A leaked object now and then, of any size."""
    onset = t.onset(90)
    events = t.rng.random(t.time.size) < 0.2
    _memory(t, np.cumsum(events * t.rng.exponential(_rate(t), t.time.size) * (onset < t.time)) * 1.25, onset)


def per_generation(t: Trace) -> None:
    """Environments made anew each generation and never closed."""
    onset, many = t.onset(60), float(t.rng.integers(4, 17))
    first = np.ceil(onset / t.generation) * t.generation
    made = many * np.where(first <= t.time, 1 + t.stairs(first, t.generation, 1), 0)
    t.count('trainer_objects{type="TradingEnvironment"}', 2 + made)
    t.leak("objects", "TradingEnvironment", onset)
    _memory(t, made * t.base * t.uniform(0.01, 0.05), onset)


def in_evaluation(t: Trace) -> None:
    """Only evaluations leak: a short ramp every ten minutes or so."""
    onset, period = t.onset(60), t.uniform(8, 14)
    share = np.where((t.time % period) < period * 0.4, 2.5, 0.0)
    _memory(t, np.cumsum(share * (onset < t.time)) * _rate(t) / 4, onset)


def under_sawtooth(t: Trace) -> None:
    """Hidden by what each generation takes and gives back."""
    onset, rate = t.onset(60), t.base * t.log_uniform(0.01, 0.05)
    t.resident += t.sawtooth(rate * t.uniform(5, 25), t.generation)
    _memory(t, t.ramp(onset, rate), onset)


def under_oscillation(t: Trace) -> None:
    """Hidden by a slow swing of the level."""
    onset, rate = t.onset(60), t.base * t.log_uniform(0.01, 0.05)
    t.resident += t.wave(rate * 20, t.uniform(60, 120), t.uniform(0.25, 0.6))
    _memory(t, t.ramp(onset, rate), onset)


def under_buffer_fill(t: Trace) -> None:
    """Beside a replay buffer that still fills."""
    onset = t.onset(40)
    healthy.lazy_buffer(t)
    capacity = float(t.series['trainer_buffer_capacity_bytes{buffer="replay"}'][0])
    _memory(t, t.ramp(onset, max(_rate(t), capacity / 200)), onset)


def after_startup_peak(t: Trace) -> None:
    """Below a peak that loading left behind."""
    onset = t.onset(60)
    healthy.startup_peak(t)
    _memory(t, t.ramp(onset, _rate(t)), onset)


def relapse(t: Trace) -> None:
    """Cleanups on demand free it, and it comes back."""
    onset, rate, period = t.onset(20), _rate(t), t.uniform(40, 70)
    cleanups = np.floor(np.maximum(t.time - onset, 0) / period)
    t.series['trainer_cleanups_total{action="emergency"}'] = cleanups
    _memory(t, t.ramp(onset, rate) - cleanups * rate * period * t.uniform(0.85, 1.0), onset)


def across_restart(t: Trace) -> None:
    """It leaks from its start, and a restart does not help."""
    t.restarts = [t.uniform(80, 140)]
    _memory(t, t.ramp(10, _rate(t)), 10)


def in_workers(t: Trace) -> None:
    """Child processes, not the trainer."""
    onset, each = t.onset(), t.log_uniform(0.3e9, 4e9)
    values = each * (1 + t.rng.normal(0, 0.003, t.time.size)) + t.ramp(
        onset, each * t.log_uniform(0.005, 0.05)
    )
    t.series['trainer_process_resident_memory_bytes{role="worker"}'] = np.round(values)
    t.leak("memory", "worker", onset)


def gpu_tensors(t: Trace) -> None:
    """Tensors that stay on the GPU."""
    onset, live = t.onset(), t.log_uniform(1e9, 20e9)
    values = live * (1 + t.rng.normal(0, 0.01, t.time.size)) + t.ramp(
        onset, live * t.log_uniform(0.008, 0.05)
    )
    t.series['trainer_gpu_memory_allocated_bytes{device="0"}'] = np.round(values)
    t.series['trainer_gpu_memory_reserved_bytes{device="0"}'] = np.round(np.maximum.accumulate(values) * 1.1)
    t.leak("gpu_memory", "0", onset)
    t.count('trainer_objects{type="Tensor"}', 800 + t.drift(20, 3) + t.ramp(onset, t.uniform(50, 500)))
    t.leak("objects", "Tensor", onset)


def bodies(t: Trace) -> None:
    """Bodies of one type that are never destroyed."""
    healthy.episode_bodies(t)
    onset, kind = t.onset(), str(t.rng.choice(["static", "dynamic", "unknown"]))
    rate = t.log_uniform(0.6, 4) if kind == "unknown" else t.log_uniform(6, 40)
    t.count(
        f'trainer_bodies{{type="{kind}"}}', t.series[f'trainer_bodies{{type="{kind}"}}'] + t.ramp(onset, rate)
    )
    t.leak("bodies", kind, onset)


def food(t: Trace) -> None:
    """Food that spawns faster than it is eaten."""
    healthy.episode_bodies(t)
    onset, name = t.onset(), 'trainer_entities{type="food_sources"}'
    t.count(name, t.series[name] + t.ramp(onset, t.log_uniform(1, 6)))
    t.leak("entities", "food_sources", onset)


def events(t: Trace) -> None:
    """A list of events that nobody trims."""
    healthy.bounded_lists(t)
    onset = t.onset()
    t.count(
        'trainer_event_list_items{list="predation"}',
        t.uniform(0, 300) + t.ramp(onset, t.log_uniform(20, 800)),
    )
    t.leak("events", "predation", onset)


def past_its_bound(t: Trace) -> None:
    """A bounded list replaced by one that is not: longer than it declares."""
    healthy.bounded_lists(t)
    name = 'trainer_event_list_items{list="death"}'
    size = float(t.series['trainer_event_list_capacity_items{list="death"}'][0])
    onset = t.onset(60)
    t.count(name, np.where(onset < t.time, size * 0.9 + t.ramp(onset, size / 50), size * 0.9))
    t.leak("events", "death", onset + 5)


def unbounded_buffer(t: Trace) -> None:
    """A buffer without a bound."""
    onset, rate = t.onset(60), _rate(t)
    held = t.ramp(onset, rate)
    t.series['trainer_buffer_bytes{buffer="experience"}'] = np.round(held)
    t.count('trainer_buffer_items{buffer="experience"}', held / t.log_uniform(1e3, 1e5))
    t.leak("buffer", "experience", onset)
    _memory(t, held, onset)


def named_object(t: Trace) -> None:
    """A watched object that grows by more than 5 MB an epoch."""
    healthy.named_objects(t)
    onset = t.onset()
    held = t.ramp(onset, max(_rate(t), 9e6))
    t.series['trainer_object_size_bytes{object="experience"}'] = np.round(5e8 + held)
    t.leak("object_size", "experience", onset)
    _memory(t, held, onset)


def fast(t: Trace) -> None:
    """More than a hundredth of the level a minute."""
    onset = t.onset()
    t.noise = min(t.noise, 2e-3)
    _memory(t, t.ramp(onset, t.base * 1.3 * t.log_uniform(0.012, 0.08)), onset)


def every_episode(t: Trace) -> None:
    """A list of returns, one more at each end of a short episode."""
    onset, length = t.onset(), t.uniform(0.05, 0.6)
    t.series['trainer_progress_total{unit="episode"}'] = np.floor(t.time / length)
    t.count(
        'trainer_event_list_items{list="returns"}',
        np.floor(t.ramp(onset, 1 / length)) * t.rng.integers(1, 20),
    )
    t.leak("events", "returns", onset)


def short_debugging_run(t: Trace) -> None:
    """Ten minutes of short episodes: a list and the memory grow at each of them, from the first."""
    length = t.uniform(0.05, 0.5)
    t.generation = t.uniform(0.5, 2)
    t.noise = min(t.noise, 5e-4)
    t.series['trainer_progress_total{unit="episode"}'] = np.floor(t.time / length)
    t.count('trainer_event_list_items{list="returns"}', np.floor(t.ramp(1, 1 / length)))
    t.leak("events", "returns", 1)


def slow_generations(t: Trace) -> None:
    """Generations of an hour or two, each of which keeps as much again."""
    t.generation, gained = t.uniform(60, 120), t.base * t.uniform(0.2, 2)
    during = t.uniform(0.05, 0.3)  # the share of a generation in which it happens
    into = (t.time / t.generation) % 1.0
    kept = np.floor(t.time / t.generation) + np.clip((into - 0.3) / during, 0, 1)
    _memory(t, gained * kept, 0.3 * t.generation)


def rarely_read(t: Trace) -> None:
    """Bodies that are never destroyed, counted every minute or four."""
    onset = t.onset()
    bodies = t.uniform(80, 300) + t.drift(2, 5) + t.ramp(onset, t.log_uniform(6, 40))
    t.count('trainer_bodies{type="dynamic"}', t.read_every(t.uniform(1, 4), "bodies", bodies))
    t.leak("bodies", "dynamic", onset)


def beside_undeclared_array(t: Trace) -> None:
    """While a preallocated array that nobody declared becomes resident."""
    onset, size = t.onset(60), t.base * t.log_uniform(0.3, 2)
    rate = size / t.uniform(60, 400)
    touched = np.minimum(t.ramp(0, rate), size)
    t.resident += touched
    t.untouched += size - touched
    t.maps = True
    _memory(t, t.ramp(onset, max(_rate(t), rate)), onset)


def beside_retention(t: Trace) -> None:
    """While malloc also keeps some of what is freed."""
    onset, rate = t.onset(60), t.base * t.log_uniform(0.008, 0.05)
    kept = t.approach(t.base * t.uniform(0.1, 0.4), t.uniform(5, 40))
    t.allocator(kept)
    t.resident += kept
    _memory(t, t.ramp(onset, rate), onset)


def retention(t: Trace) -> None:
    """No leak, and yet a verdict: malloc keeps what is freed, without end, and nobody uses it."""
    onset, rate = t.onset(60), t.base * t.log_uniform(0.004, 0.03)
    t.allocator(t.ramp(onset, rate))
    t.resident += t.ramp(onset, rate)
    t.truth.append({"resource": "memory", "component": "trainer", "onset_min": onset, "kind": "growth"})


LEAKS = {
    f.__name__: f
    for f in (
        linear, slow, late, accelerating, slowing_trainer, bursts, per_generation, in_evaluation,
        under_sawtooth, under_oscillation, under_buffer_fill, after_startup_peak, relapse, across_restart,
        in_workers, gpu_tensors, bodies, food, events, past_its_bound, unbounded_buffer, named_object,
        fast, every_episode, short_debugging_run, slow_generations, rarely_read, beside_undeclared_array,
        beside_retention, retention,
    )
}  # fmt: skip
# Minutes, of those that do not run for four hours.
LENGTHS = {"short_debugging_run": 12, "slow_generations": 720}
