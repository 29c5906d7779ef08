"""What lasting growth is: one definition, and how strictly it is applied to what.

A level grows for good if what it keeps rises in each part of a span, does not slow down in the later parts,
and does not come from a single step. What differs between levels is data: a `Standard`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Standard:
    """How even growth has to be. The rises of the parts of a span are compared with those of even growth.

    Attributes:
        each_part: least rise of any part, as a share of the average part.
        second_half: least rate of the second half, as a share of the overall rate; 0 if it is not tested.
        last_part: least rate of the last part, as a share of the overall rate.
        largest_step: largest share of the whole rise that one step may have; 1 if it is not tested.
        earlier: least rise, as a multiple of that of half a span before it; 0 if it is not tested.
        straight: least R squared of a straight line through the readings; 0 if it is not tested.

    """

    each_part: float = 0.0
    second_half: float = 0.0
    last_part: float = 0.0
    largest_step: float = 1.0
    earlier: float = 0.0
    straight: float = 0.0


# What is counted and known to be kept, such as the items of a container, from its first readings on. It may
# be bursty: a container that is filled once an episode.
COUNTED = Standard(each_part=0.05, last_part=0.5)
# What is only measured, such as resident memory: others share it, and warm-ups, caches and phases move it.
MEASURED = Standard(second_half=0.99, last_part=0.95, largest_step=0.4, earlier=1.99, straight=0.7)
# Levels at the ends of three cycles that together last an hour or more.
CYCLES = Standard(last_part=0.81, largest_step=0.5)

# Fewest levels, at the ends of cycles or rounds, and least seconds of a rise, by which COUNTED is applied.
# With less, a leak and a warm-up look the same. Rounds of a test take hardly any time: it takes more of them.
FEWEST_LEVELS, SHORTEST_SECONDS = 6, 120.0
FEWEST_ROUNDS = 9


def lasts(
    rises: Sequence[float],
    standard: Standard,
    *,
    seconds: Sequence[float] = (),
    largest_step: float = 0.0,
    earlier: float = 0.0,
    straight: float = 1.0,
) -> bool:
    """Whether growth is lasting.

    Args:
        rises: rise of each part of the span, in order.
        standard: how even it has to be.
        seconds: length of each part, in the unit of its axis; empty if they are equal.
        largest_step: the largest rise in one step.
        earlier: rise of half a span before the span.
        straight: R squared of a straight line through the readings.

    """
    whole = sum(rises)
    if whole <= 0 or min(rises) < standard.each_part * whole / len(rises):
        return False
    lengths = seconds or [1.0] * len(rises)
    rate, half = whole / sum(lengths), len(rises) // 2
    late = sum(rises[half:]) / sum(lengths[half:]) if sum(lengths[half:]) > 0 else rate
    last = rises[-1] / lengths[-1] if lengths[-1] > 0 else 0.0
    return (
        late >= standard.second_half * rate
        and last >= standard.last_part * rate
        and largest_step <= standard.largest_step * whole
        and whole >= standard.earlier * earlier
        and straight >= standard.straight
    )
