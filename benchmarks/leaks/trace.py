"""One trainer's made-up telemetry: shapes of memory and counts over time, and the series they make."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Signal = NDArray[np.float64]

MINUTES = 240
SCRAPE_SECONDS = 15


class Trace:
    """A trainer being made up: its random numbers, its series, its leaks.

    Args:
        rng: where its numbers come from.
        minutes: how long it runs.
        scrape_seconds: seconds between its samples.

    """

    def __init__(
        self, rng: np.random.Generator, minutes: float = MINUTES, scrape_seconds: int = SCRAPE_SECONDS
    ) -> None:
        self.rng = rng
        self.scrape_seconds = scrape_seconds
        self.time: Signal = np.arange(round(minutes * 60 / scrape_seconds)) * scrape_seconds / 60
        self.series: dict[str, Signal] = {}
        self.truth: list[dict[str, object]] = []
        self.restarts: list[float] = []
        self.base = self.log_uniform(0.2e9, 40e9)
        self.noise = self.log_uniform(5e-5, 5e-3)
        self.generation = self.uniform(4, 20)
        self.resident: Signal = self.base + self.approach(
            self.base * self.uniform(0.02, 0.3), self.uniform(1, 6)
        )
        # What was reserved by an allocation and not touched yet: virtual, not resident.
        self.untouched: Signal = np.full(self.time.size, self.base * self.uniform(0.2, 3))
        self.maps = self.rng.random() < 0.6  # whether its virtual memory is known

    def uniform(self, low: float, high: float) -> float:
        """A number between `low` and `high`."""
        return float(self.rng.uniform(low, high))

    def log_uniform(self, low: float, high: float) -> float:
        """A number between `low` and `high`, each order of magnitude as likely."""
        return float(np.exp(self.rng.uniform(math.log(low), math.log(high))))

    def ramp(self, start: float, per_minute: float = 1.0) -> Signal:
        """Nothing until minute `start`, then `per_minute`."""
        return per_minute * np.maximum(self.time - start, 0)

    def stairs(self, start: float, period: float, height: float) -> Signal:
        """`height` more at the end of each `period` (minutes) after `start`."""
        return height * np.floor(np.maximum(self.time - start, 0) / period)

    def approach(self, amplitude: float, minutes: float, start: float = 0.0) -> Signal:
        """Exponential approach to `amplitude` with a time constant of `minutes`."""
        return amplitude * (1 - np.exp(-np.maximum(self.time - start, 0) / minutes))

    def logarithmic(self, amplitude: float, minutes: float) -> Signal:
        """Growth that slows down without ever ending: `amplitude` for each e-fold after `minutes`."""
        return amplitude * np.log1p(self.time / minutes)

    def sawtooth(self, amplitude: float, period: float, phase: float = 0.0) -> Signal:
        """Rises over each period and falls back at its end."""
        return amplitude * (((self.time + phase) / period) % 1.0)

    def wave(self, amplitude: float, period: float, phase: float = 0.0) -> Signal:
        """A sine, never below zero."""
        return amplitude * (1 + np.sin(2 * math.pi * (self.time / period + phase))) / 2

    def bumps(self, height: float, period: float, length: float, phase: float = 0.0) -> Signal:
        """`height` for `length` minutes of every `period`."""
        return np.where((self.time + phase) % period < length, height, 0.0)

    def drift(self, scale: float, minutes: float) -> Signal:
        """Noise with standard deviation `scale` that remembers for `minutes` (first-order autoregression)."""
        keep = math.exp(-self.scrape_seconds / 60 / minutes)
        kicks = self.rng.normal(0, scale * math.sqrt(1 - keep**2), self.time.size)
        out = np.empty(self.time.size)
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

    def read_every(self, minutes: float, collector: str, values: Signal) -> Signal:
        """What is seen of `values` when they are read that seldom; adds the age of the sample."""
        every = max(1, round(minutes * 60 / self.scrape_seconds))
        index = np.arange(self.time.size)
        age: Signal = (index % every).astype(float) * self.scrape_seconds
        self.series[f'trainer_exporter_sample_age_seconds{{collector="{collector}"}}'] = age
        seen: Signal = values[index - index % every]
        return seen

    def allocator(self, retained: Signal) -> None:
        """Add what malloc says of itself: what is handed out, and what it keeps though it is free."""
        known = self.series.get(
            "trainer_allocator_retained_bytes{}", np.full(self.time.size, 0.02 * self.base)
        )
        self.series["trainer_allocator_retained_bytes{}"] = np.round(known + retained)

    def finish(self, gaps: bool = False) -> None:
        """Write the series that every trainer has, wipe what a restart wipes, and lose some scrapes."""
        many = self.time.size
        rough = self.rng.normal(0, self.noise * self.base, many) + self.drift(self.noise * self.base, 10)
        self.series['trainer_process_resident_memory_bytes{role="trainer"}'] = np.round(self.resident + rough)
        if self.maps:
            reserved = np.maximum.accumulate(self.resident) if self.rng.random() < 0.5 else self.resident
            self.series['trainer_process_virtual_memory_bytes{role="trainer"}'] = np.round(
                reserved + self.untouched
            )
        self.series['trainer_progress_total{unit="generation"}'] = np.floor(self.time / self.generation)
        self.series['trainer_progress_total{unit="step"}'] = np.floor(self.time * self.uniform(500, 5000))
        whole = sum(
            values
            for name, values in self.series.items()
            if "resident_memory" in name and "phase" not in name
        )
        limit = float(np.max(whole)) * self.log_uniform(1.3, 20)
        self.series["trainer_memory_limit_bytes{}"] = np.full(many, round(limit))
        self.series = {name: values.astype(float) for name, values in self.series.items()}
        start = np.zeros(many)
        for minute in sorted(self.restarts):
            at = int(minute * 60 / self.scrape_seconds)
            start[at:] = minute * 60
            for name, values in self.series.items():
                if "limit" not in name and "capacity" not in name:
                    values[at:] = values[: many - at].copy()
                    values[at - 4 : at] = np.nan
        self.series["process_start_time_seconds{}"] = start
        if gaps:
            for _ in range(int(self.rng.integers(4, 10))):
                at = int(self.rng.integers(0, many))
                length = int(self.rng.integers(4, 30)) * SCRAPE_SECONDS // self.scrape_seconds
                for values in self.series.values():
                    values[at : at + length] = np.nan
