"""One trainer's made-up telemetry: shapes of memory and counts over time, and the series they make."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Signal = NDArray[np.float64]

SCRAPE_SECONDS = 15
MINUTES = 240
SAMPLES = MINUTES * 60 // SCRAPE_SECONDS
TIME: Signal = np.arange(SAMPLES) * SCRAPE_SECONDS / 60  # minutes since the first scrape


def ramp(start: float, per_minute: float = 1.0) -> Signal:
    """Nothing until `start`, then `per_minute`."""
    return per_minute * np.maximum(TIME - start, 0)


def stairs(start: float, period: float, height: float) -> Signal:
    """`height` more at the end of each `period` after `start`."""
    return height * np.floor(np.maximum(TIME - start, 0) / period)


def approach(amplitude: float, minutes: float, start: float = 0.0) -> Signal:
    """Exponential approach to `amplitude` with a time constant of `minutes`."""
    return amplitude * (1 - np.exp(-np.maximum(TIME - start, 0) / minutes))


def logarithmic(amplitude: float, minutes: float) -> Signal:
    """Growth that slows down without ever ending: `amplitude` for each e-fold after `minutes`."""
    return amplitude * np.log1p(TIME / minutes)


def sawtooth(amplitude: float, period: float, phase: float = 0.0) -> Signal:
    """Rises over each period and falls back at its end."""
    return amplitude * (((TIME + phase) / period) % 1.0)


def wave(amplitude: float, period: float, phase: float = 0.0) -> Signal:
    """A sine, never below zero."""
    return amplitude * (1 + np.sin(2 * math.pi * (TIME / period + phase))) / 2


def bumps(height: float, period: float, length: float, phase: float = 0.0) -> Signal:
    """`height` for `length` minutes of every `period`."""
    return np.where((TIME + phase) % period < length, height, 0.0)


@dataclass
class Trace:
    """A trainer being made up: its random numbers, its series, its leaks."""

    rng: np.random.Generator
    series: dict[str, Signal] = field(default_factory=dict)
    truth: list[dict[str, object]] = field(default_factory=list)
    restarts: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Choose what every trainer has: a size, a pace, a noise level."""
        self.base = self.log_uniform(0.3e9, 8e9)
        self.noise = self.log_uniform(5e-5, 5e-3)
        self.generation = self.uniform(4, 20)
        self.resident = np.full(SAMPLES, self.base) + approach(
            self.base * self.uniform(0.02, 0.3), self.uniform(1, 6)
        )

    def uniform(self, low: float, high: float) -> float:
        """A number between `low` and `high`."""
        return float(self.rng.uniform(low, high))

    def log_uniform(self, low: float, high: float) -> float:
        """A number between `low` and `high`, each order of magnitude as likely."""
        return float(np.exp(self.rng.uniform(math.log(low), math.log(high))))

    def drift(self, scale: float, minutes: float) -> Signal:
        """Noise with standard deviation `scale` that remembers for `minutes` (first-order autoregression)."""
        keep = math.exp(-SCRAPE_SECONDS / 60 / minutes)
        kicks = self.rng.normal(0, scale * math.sqrt(1 - keep**2), SAMPLES)
        out = np.empty(SAMPLES)
        level = self.rng.normal(0, scale)
        for i, kick in enumerate(kicks):
            level = keep * level + kick
            out[i] = level
        return out

    def onset(self, latest: float = 120.0) -> float:
        """The minute a leak begins."""
        return self.uniform(5, latest)

    def leak(self, resource: str, component: str | None, onset: float) -> None:
        """Say in the truth what leaks from `onset` (minutes) on; a component of None means any."""
        self.truth.append({"resource": resource, "component": component, "onset_min": onset})

    def count(self, name: str, values: Signal) -> None:
        """Add a series of whole numbers."""
        self.series[name] = np.maximum(np.round(values), 0)

    def finish(self, gaps: bool = False) -> None:
        """Write the series that every trainer has, wipe what a restart wipes, and lose some scrapes."""
        rough = self.rng.normal(0, self.noise * self.base, SAMPLES) + self.drift(self.noise * self.base, 10)
        self.series['trainer_process_resident_memory_bytes{role="trainer"}'] = np.round(self.resident + rough)
        self.series['trainer_progress_total{unit="generation"}'] = np.floor(TIME / self.generation)
        self.series['trainer_progress_total{unit="step"}'] = np.floor(TIME * self.uniform(500, 5000))
        self.series["trainer_memory_limit_bytes{}"] = np.full(SAMPLES, 128e9)
        self.series = {name: values.astype(float) for name, values in self.series.items()}
        start = np.zeros(SAMPLES)
        for minute in sorted(self.restarts):
            at = int(minute * 60 / SCRAPE_SECONDS)
            start[at:] = minute * 60
            for name, values in self.series.items():
                if "limit" not in name and "capacity" not in name:
                    values[at:] = values[: SAMPLES - at].copy()
                    values[at - 4 : at] = np.nan
        self.series["process_start_time_seconds{}"] = start
        if gaps:
            for _ in range(int(self.rng.integers(4, 10))):
                at, length = int(self.rng.integers(0, SAMPLES)), int(self.rng.integers(4, 30))
                for values in self.series.values():
                    values[at : at + length] = np.nan
