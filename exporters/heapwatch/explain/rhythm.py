"""How often the explainer looks: often at the start and while memory grows fast, else more rarely."""

from __future__ import annotations

from typing import NamedTuple

from heapwatch.explain.evidence import Levels

_START_SECONDS = 120.0
_RECENT_SECONDS = 120.0
_HURRY = 1 / 6  # growth that is material in ten minutes or fills the memory in four hours; see Levels.matters


class Rhythm(NamedTuple):
    """Seconds between two slices, evaluations, weighings, readings of what changes, and walks."""

    tick: float
    judge: float
    weigh: float
    reading: float
    walk: float


HURRIED = Rhythm(tick=0.2, judge=5.0, weigh=5.0, reading=1.0, walk=15.0)
CALM = Rhythm(tick=1.0, judge=20.0, weigh=20.0, reading=5.0, walk=120.0)


def rhythm_of(levels: Levels, rounds: int) -> Rhythm:
    """The rhythm for the growth so far, after so many complete walks.

    The growth of the last minutes counts as well as that since the start, so that a leak that begins after
    hours of rest ends the rest.
    """
    if not rounds or levels.now - levels.began < _START_SECONDS:
        return HURRIED
    fastest = max(levels.per_minute, levels.recent_per_minute(_RECENT_SECONDS))
    return HURRIED if levels.matters(_HURRY * fastest) else CALM
