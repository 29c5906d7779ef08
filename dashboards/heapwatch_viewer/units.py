"""Grafana's units: how a number is written for a person."""

import math
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Unit:
    """A unit as data, so that Python and the browser write a number the same way.

    Attributes:
        steps: (factor, suffix) pairs, rising; the largest factor not above the value is used.
        multiply: applied before anything else (100 for a ratio shown in percent).

    """

    steps: tuple[tuple[float, str], ...]
    multiply: float = 1.0

    def as_dict(self, decimals: int | None) -> dict[str, object]:
        """The same unit for the browser, with the number of decimals (None: chosen by size)."""
        return {"steps": self.steps, "multiply": self.multiply, "decimals": decimals}


def _si(suffix: str) -> tuple[tuple[float, str], ...]:
    space = " " if suffix else ""
    larger = ((10.0 ** (3 * power), f" {prefix}{suffix}") for power, prefix in enumerate("kMGTP", start=1))
    return ((1, f"{space}{suffix}"), *larger)


_TIME = (
    (1e-9, " ns"),
    (1e-6, " µs"),
    (1e-3, " ms"),
    (1, " s"),
    (60, " min"),
    (3600, " h"),
    (86400, " d"),
    (7 * 86400, " wk"),
    (365 * 86400, " y"),
)
_COUNT = ((1, ""), (1e3, " K"), (1e6, " Mil"), (1e9, " Bil"))

UNITS = {
    "none": Unit(((1, ""),)),
    "short": Unit(_COUNT),
    "decbytes": Unit(_si("B")),
    "s": Unit(_TIME),
    "percentunit": Unit(((1, "%"),), multiply=100.0),
    "cps": Unit(_si("c/s")),
    "dateTimeFromNow": Unit(((1, " ago"),)),
}


def write(value: float | None, unit: Unit, decimals: int | None = None) -> str:
    """Write `value` with its unit: `write(1.5e9, UNITS["decbytes"])` is `1.50 GB`."""
    if value is None or math.isnan(value):
        return "–"
    if unit is UNITS["dateTimeFromNow"]:
        away = value / 1000 - time.time()
        length = write(abs(away), UNITS["s"], 0)
        return f"{length} ago" if away < 0 else f"in {length}"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    scaled = value * unit.multiply
    factor, suffix = unit.steps[0]
    for step, text in unit.steps:
        if abs(scaled) >= step or (scaled == 0 and step <= 1):
            factor, suffix = step, text
    number = scaled / factor
    if number == 0:
        decimals = 0
    elif decimals is None:
        decimals = 0 if number == int(number) else 2 if abs(number) < 10 else 1 if abs(number) < 100 else 0
    return f"{number:.{decimals}f}{suffix}"
