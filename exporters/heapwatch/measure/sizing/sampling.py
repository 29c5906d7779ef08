"""Stratified samples of the items of a container, and estimates for the whole from them."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, pairwise
from typing import Any

from heapwatch.measure.introspection.names import type_of

Container = list[Any] | tuple[Any, ...] | deque[Any] | dict[Any, Any] | set[Any] | frozenset[Any]
CONTAINERS = (list, tuple, deque, dict, set, frozenset)

_ATTEMPTS = 3

# A separate generator: sampling must not change the trainer's random state.
_random = random.Random(0x5EED)


@contextmanager
def same_samples() -> Iterator[Callable[[], None]]:
    """Yields a function after which the next samples repeat those since the start of the context."""
    state = _random.getstate()
    yield lambda: _random.setstate(state)


class ContainerChanged(RuntimeError):
    """The container kept changing while it was read."""


def length_of(container: Container) -> int:
    """The number of items, as the built-in type counts them; a subclass's `__len__` may differ."""
    return int(_base_of(container).__len__(container))


def _base_of(container: Container) -> Any:
    """The built-in type of a container, whose methods run no code of a subclass."""
    return next(base for base in CONTAINERS if issubclass(type(container), base))


def positions(length: int, count: int) -> list[int]:
    """`count` increasing positions in `range(length)`, or all: head, tail, one at random in each stratum.

    The random position inside a stratum avoids aliasing with a periodic container, such as an event every 64
    items. Strata end between two items, so that no two share one: a stratum left out would weigh against the
    items around it.
    """
    if length <= count:
        return list(range(length))
    strata = count - 2
    ends = [1 + (length - 2) * stratum // strata for stratum in range(strata + 1)]
    middle = (start + int(_random.random() * (end - start)) for start, end in pairwise(ends))
    return [0, *middle, length - 1]


def random_position_in_each(length: int, count: int) -> list[int]:
    """A random position in each of `count` parts of `range(length)`, in increasing order."""
    return sorted({int((part + _random.random()) * length / count) for part in range(count)})


def pick(container: Container, wanted: Sequence[int]) -> list[list[Any]]:
    """The items at the increasing positions `wanted`; a dict's item is `[key, value]`, any other's `[item]`.

    `__getitem__` and `__iter__` of a subclass are not used, because reading must have no side effects.

    Raises:
        ContainerChanged: another thread kept changing the container.

    """
    for _ in range(_ATTEMPTS):
        try:
            return _pick(container, wanted)
        except (IndexError, RuntimeError, StopIteration):
            continue
    raise ContainerChanged(f"a {type_of(container)} kept changing while it was read")


def _pick(container: Any, wanted: Sequence[int]) -> list[list[Any]]:
    # A deque is indexed block by block from its nearer end, in C: 7 us in the middle of 1e6 items, where one
    # pass over all of them costs 80 times as much.
    base = _base_of(container)
    if base is list or base is tuple or base is deque:
        return [[base.__getitem__(container, position)] for position in wanted]
    if base is dict:
        # Making the pairs that are skipped would take most of the time.
        keys = _skip(iter(dict.keys(container)), wanted)
        values = _skip(iter(dict.values(container)), wanted)
        return [list(item) for item in zip(keys, values, strict=True)]
    return [[item] for item in _skip(base.__iter__(container), wanted)]


def _skip(items: Iterator[Any], wanted: Iterable[int]) -> Iterator[Any]:
    previous = -1
    for position in wanted:
        yield next(islice(items, position - previous - 1, None))
        previous = position


def random_order(count: int) -> list[int]:
    """`range(count)` in random order, so that an aborted reading has covered all regions."""
    return _random.sample(range(count), count)


def variance_of_mean(values: Sequence[float], length: int) -> float:
    """Variance of the mean of `values`, a systematic sample in order of `length` items.

    It comes from successive differences, which a trend along the container does not inflate, with the finite
    population correction: (1 - k/N) / k * sum (x_i - x_{i-1})^2 / (2 (k - 1)), estimator v2 of K. M. Wolter,
    Introduction to Variance Estimation, 2nd ed. (2007), section 8.2.
    """
    size = len(values)
    if size < 2 or size >= length:
        return 0.0
    differences = math.fsum((after - before) ** 2 for before, after in pairwise(values))
    return (1 - size / length) / size * differences / (2 * (size - 1))
