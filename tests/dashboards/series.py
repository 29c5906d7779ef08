"""The time grid and the shapes that made-up series are composed of."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Value = float | None
Shape = Callable[[float], Value] | float
"""A value at a number of minutes after the start of the history, or always the same one."""


class Series(NamedTuple):
    """One series: a value for each moment of the clock, None where it is absent."""

    name: str
    labels: dict[str, str]
    values: Sequence[Value]


@dataclass(frozen=True)
class Clock:
    """Unix times in seconds: the start of the history, the moment it was made, its end, and the step."""

    start: int
    now: int
    end: int
    step: int

    @property
    def times(self) -> range:
        """Every moment that has a sample."""
        return range(self.start, self.end, self.step)

    @property
    def minutes(self) -> float:
        """Length of the history before now."""
        return (self.now - self.start) / 60

    def each(self, shape: Shape) -> list[Value]:
        """The shape at each moment."""
        value_at = function(shape)
        return [value_at((moment - self.start) / 60) for moment in self.times]


def function(shape: Shape) -> Callable[[float], Value]:
    """The shape as a function of the minute."""
    return shape if callable(shape) else lambda minute: shape


def noisy(shape: Callable[[float], float] | float, spread: float, seed: int) -> Callable[[float], float]:
    """The shape with noise of this standard deviation."""
    source = random.Random(seed)
    value_at = function(shape)
    return lambda minute: value_at(minute) + source.gauss(0, spread)


def whole(shape: Callable[[float], float]) -> Callable[[float], float]:
    """The shape in whole numbers, as of things that are counted."""
    return lambda minute: float(round(shape(minute)))


def filling(full: float, minutes: float, start: float = 0) -> Callable[[float], float]:
    """Rises to `full` within these minutes, then stays."""
    return lambda minute: full * min(max(minute - start, 0) / minutes, 1)


def ramp(start: float, per_minute: float) -> Callable[[float], float]:
    """Zero until `start`, then rises for ever."""
    return lambda minute: max(minute - start, 0) * per_minute


def sawtooth(height: float, period: float) -> Callable[[float], float]:
    """Rises to `height` within each period and falls back."""
    return lambda minute: height * (minute % period) / period


def within(shape: Shape, start: float, end: float = float("inf")) -> Shape:
    """The shape between two minutes, absent outside."""
    value_at = function(shape)
    return lambda minute: value_at(minute) if start <= minute < end else None


def scaled(values: Sequence[Value], factor: float) -> list[Value]:
    """The values times this factor, absent where they are."""
    return [None if value is None else value * factor for value in values]


def slope(values: Sequence[Value], samples: int) -> list[Value]:
    """Growth a sample over the last `samples`, absent until there are enough of them."""
    result: list[Value] = []
    for index, value in enumerate(values):
        before = values[index - samples] if index >= samples else None
        result.append(None if value is None or before is None else (value - before) / samples)
    return result
