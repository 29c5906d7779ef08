"""Helpers that keep a trainer's memory constant: bounded histories, closed figures, scheduled cleanup."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from heapwatch.runtime.failures import is_trainers
from heapwatch.runtime.labels import checked_name, is_whole

Item = TypeVar("Item")
Function = TypeVar("Function", bound=Callable[[], object])


def bounded(history: Iterable[Item], most: int) -> deque[Item]:
    """The newest `most` items of `history`, in a deque that never holds more.

    Raises:
        ValueError: when `most` is not a whole number above 0.

    """
    if not is_whole(most):
        raise ValueError(f"a history keeps a whole number of items above 0, got {most!r}")
    return deque(history, maxlen=most)


def close_figures() -> int:
    """Close every matplotlib figure that pyplot still holds; returns how many. 0 where it is not in use."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return 0
    open_figures = len(pyplot.get_fignums())
    pyplot.close("all")
    return open_figures


class Schedule:
    """Calls functions every so many steps, episodes, epochs or generations.

    A function that raises stops neither the others nor training; `errors` keeps the newest errors.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._tasks: list[tuple[int, str, Callable[[], object]]] = []
        self.errors: deque[str] = deque(maxlen=100)

    def every(self, count: int, unit: str) -> Callable[[Function], Function]:
        """Call the decorated function after every `count` units.

        Raises:
            ValueError: for a count that is not a whole number above 0, or a bad unit.

        """
        if not is_whole(count):
            raise ValueError(f"a schedule needs a whole number above 0, got {count!r}")
        checked_name("unit", unit)

        def decorate(function: Function) -> Function:
            self._tasks.append((count, unit, function))
            return function

        return decorate

    def tick(self, unit: str) -> None:
        """Count one more `unit` and call the functions that are due."""
        self._counts[unit] += 1
        for count, wanted, function in self._tasks:
            if wanted == unit and self._counts[unit] % count == 0:
                try:
                    function()
                except BaseException as error:
                    if is_trainers(error):
                        raise
                    self.errors.append(f"{getattr(function, '__name__', function)}: {error!r}")
