"""Reducing a series to one number: the calculations that legends, stats and gauges show."""

import math
from collections.abc import Callable, Sequence

Points = Sequence[tuple[float, float]]


def _numbers(points: Points) -> list[float]:
    return [value for _, value in points if not math.isnan(value)]


def _over(calculate: Callable[[list[float]], float]) -> Callable[[Points], float | None]:
    def reduction(points: Points) -> float | None:
        numbers = _numbers(points)
        return calculate(numbers) if numbers else None

    return reduction


CALCULATIONS: dict[str, tuple[str, Callable[[Points], float | None]]] = {
    "lastNotNull": ("Last", _over(lambda numbers: numbers[-1])),
    "last": ("Last", _over(lambda numbers: numbers[-1])),
    "firstNotNull": ("First", _over(lambda numbers: numbers[0])),
    "min": ("Min", _over(min)),
    "max": ("Max", _over(max)),
    "mean": ("Mean", _over(lambda numbers: sum(numbers) / len(numbers))),
    "sum": ("Total", _over(sum)),
    "count": ("Count", _over(lambda numbers: float(len(numbers)))),
    "range": ("Range", _over(lambda numbers: max(numbers) - min(numbers))),
    "delta": ("Delta", _over(lambda numbers: numbers[-1] - numbers[0])),
    "diff": ("Difference", _over(lambda numbers: numbers[-1] - numbers[0])),
}


def reduced(points: Points, calculation: str) -> float | None:
    """`points` reduced by Grafana's `calculation`; None when there is no number.

    Raises:
        ValueError: the calculation is not one of CALCULATIONS.

    """
    if calculation not in CALCULATIONS:
        raise ValueError(f"no calculation is called {calculation!r}; known: {', '.join(CALCULATIONS)}")
    return CALCULATIONS[calculation][1](points)
