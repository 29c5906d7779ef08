"""Sizes, durations and changes as text. Units are decimal: 1 kB is 1000 bytes."""

from __future__ import annotations

_SIZES = ("B", "kB", "MB", "GB", "TB")
# Unit, its seconds, and the time from which on the next unit is used.
_TIMES = (("s", 1, 120.0), ("min", 60, 7200.0), ("h", 3600, 172_800.0), ("days", 86400, float("inf")))


def size(nbytes: float, *, signed: bool = False, unit: str = "", decimals: int | None = None) -> str:
    """Bytes such as "16.5 kB".

    Args:
        nbytes: number of bytes.
        signed: whether a plus is written, too.
        unit: the unit, for sizes that are compared with each other; by default it depends on the size.
        decimals: digits after the point, in columns; by default there are three digits in all.

    """
    power = next((power for power in range(len(_SIZES)) if abs(nbytes) < 999.5 * 1000.0**power), -1)
    if unit:
        power = _SIZES.index(unit)
    digits = ".3g" if decimals is None else f".{decimals if power else 0}f"
    number = nbytes / 1000.0 ** (power % len(_SIZES))
    return f"{number:{'+' if signed else ''}{digits}} {_SIZES[power]}"


def duration(seconds: float) -> str:
    """Seconds such as "90 s" or "24 min", rounded."""
    unit, length = _time_unit(seconds)
    return f"{seconds / length:.0f} {unit}"


def duration_range(least: float, most: float) -> str:
    """Two numbers of seconds such as "40 to 60 min", rounded apart."""
    unit, length = _time_unit(most)
    low, high = int(least // length), -int(-most // length)
    return f"{f'{low} to {high}' if low < high else high} {unit}"


def _time_unit(seconds: float) -> tuple[str, int]:
    return next((unit, length) for unit, length, end in _TIMES if seconds < end)


def count_change(items: float) -> str:
    """A change in a number of items, or in an estimate of it: "+5,035", "-0.25"."""
    return f"{items:{'+,.0f' if abs(items) >= 10 else '+.2g'}}"


def from_to(before: float, after: float) -> str:
    """A count at two times: "2 -> 18 (+16)"."""
    return f"{before:.0f} -> {after:.0f} ({after - before:+.0f})"
