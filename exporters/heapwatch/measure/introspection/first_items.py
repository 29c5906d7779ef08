"""Some items of a container that another thread may change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import chain, islice
from typing import Any

_ATTEMPTS = 3


def first_items(
    container: Any, most: int, *ways: Callable[[Any], Iterable[Any]], start: int = 0
) -> list[Any]:
    """At most `most` items after the first `start` ones.

    `ways` are functions of C that lead to the iterator, each called with the result of the one before:
    `dict.values, reversed`. One call makes the iterator and uses it, since another thread could change the
    container between two. Only a finalizer can, which the garbage collector calls meanwhile.

    Raises:
        RuntimeError: the container kept changing.

    """
    for _ in range(_ATTEMPTS):
        with suppress(RuntimeError):
            return _first_items(container, most, ways, start)
    return _first_items(container, most, ways, start)


def _first_items(container: Any, most: int, ways: Iterable[Any], start: int) -> list[Any]:
    views: Iterable[Any] = (container,)
    for way in ways:
        views = map(way, views)
    return list(chain.from_iterable(map(islice, views, (start,), (start + most,))))
