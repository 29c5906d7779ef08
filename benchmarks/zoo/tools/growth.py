"""Four looks at a heap, and what grew between all of them: how a careful person reads a tool that lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

# When the looks are taken, as shares of the time; before the first, everything is warm-up.
LOOKS = (0.4, 0.6, 0.8, 1.0)
BYTES_PER_MINUTE = 1e6


def steady(looks: Sequence[Mapping[str, float]], *, at_least: float) -> list[tuple[str, float]]:
    """Names that grew in every round and by `at_least` altogether, with their growth, most first."""
    grown = [
        (name, looks[-1].get(name, 0.0) - looks[0].get(name, 0.0))
        for name in looks[-1]
        if all(after.get(name, 0.0) > before.get(name, 0.0) for before, after in pairwise(looks))
    ]
    return sorted((pair for pair in grown if pair[1] >= at_least), key=lambda pair: -pair[1])


def least_bytes(seconds: float) -> float:
    """Growth between the first look and the last that matters, for tools that tell bytes."""
    return BYTES_PER_MINUTE * seconds * (LOOKS[-1] - LOOKS[0]) / 60
