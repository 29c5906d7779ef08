"""Sizes, durations and changes as text. Units are decimal: 1 kB is 1000 bytes."""

from __future__ import annotations

import math

# Unit, its length, and the value from which on the next unit is used; the last has no next one.
_SIZES = [(unit, 1e3**power, 999.5 * 1e3**power) for power, unit in enumerate(("B", "kB", "MB", "GB", "TB"))]
_TIMES = [("s", 1.0, 120.0), ("min", 60.0, 7200.0), ("h", 3600.0, 172_800.0), ("days", 86400.0, 0.0)]


def size(nbytes: float) -> str:
    """Bytes with three digits: "16.5 kB"."""
    unit, length = _unit(nbytes, _SIZES)
    return f"{nbytes / length:.3g} {unit}"


def size_change(nbytes: float) -> str:
    """A change in bytes, with its sign: "+16.5 kB"."""
    return size(nbytes) if nbytes < 0 else f"+{size(abs(nbytes))}"


def gigabytes(nbytes: float, *, signed: bool = False) -> str:
    """Bytes in gigabytes with three decimals: "4.230 GB", for points of a run that are compared."""
    return f"{nbytes / 1e9:{'+' if signed else ''}.3f} GB"


def megabytes(nbytes: float) -> str:
    """Bytes in megabytes with one decimal and no space: "738.3MB", for the lines of the monitor."""
    return f"{nbytes / 1e6:.1f}MB"


def duration(seconds: float) -> str:
    """Seconds such as "90 s" or "24 min", rounded."""
    unit, length = _unit(seconds, _TIMES)
    return f"{seconds / length:.0f} {unit}"


def wait(seconds: float) -> str:
    """Seconds until something is known, rounded up: "24 min"."""
    unit, length = _unit(seconds, _TIMES)
    return f"{math.ceil(seconds / length)} {unit}"


def duration_range(least: float, most: float) -> str:
    """Two numbers of seconds such as "40 to 60 min", rounded apart."""
    unit, length = _unit(most, _TIMES)
    low, high = math.floor(least / length), math.ceil(most / length)
    return f"{f'{low} to {high}' if low < high else high} {unit}"


def _unit(value: float, units: list[tuple[str, float, float]]) -> tuple[str, float]:
    name, length, _ = next((unit for unit in units if abs(value) < unit[2]), units[-1])
    return name, length


def count_change(items: float) -> str:
    """A change in a number of items, or in an estimate of it: "+5,035", "-0.25"."""
    return f"{items:{'+,.0f' if abs(items) >= 10 else '+.2g'}}"


def from_to(before: float, after: float) -> str:
    """A count at two times: "2 -> 18 (+16)"."""
    return f"{before:.0f} -> {after:.0f} ({after - before:+.0f})"


def counted(number: int, one: str, many: str = "") -> str:
    """Such as `1 group` and `2,000 groups`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
