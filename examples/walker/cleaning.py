"""What the Walker trainer gives up when it is asked to clean up."""

from collections import deque
from collections.abc import MutableSequence
from typing import Any

from examples.walker.ecosystem import EVENTS_KEPT, POOL_SIZE, Ecosystem
from examples.walker.leaking import Leaks
from examples.walker.learner import REPLAY_CAPACITY, Learner

REGULAR_FOOD = 30
EMERGENCY_FOOD = 10


class Cleaner:
    """Regular and emergency cleanup, as the Walker document describes them."""

    def __init__(self, ecosystem: Ecosystem, learner: Learner, leaks: Leaks) -> None:
        self._ecosystem = ecosystem
        self._learner = learner
        self._leaks = leaks

    def clean(self, action: str) -> dict[str, int]:
        """Clean up for `action` (regular or emergency); returns how many of each resource went."""
        emergency = action == "emergency"
        ecosystem = self._ecosystem
        removed = {
            "bodies": ecosystem.destroy_orphans(),
            "food_sources": self._trim_food(EMERGENCY_FOOD if emergency else REGULAR_FOOD),
            "experiences": self._trim_replay(),
            "events": sum(self._trim_events(name, emergency) for name in ecosystem.events),
            "history": len(self._leaks.history),
        }
        self._leaks.history.clear()  # nobody reads it, so there is nothing to be gentle about
        if emergency or len(ecosystem.spare_parts) > POOL_SIZE:
            removed["bodies"] += ecosystem.drop_spare_parts()
        return removed

    def _trim_food(self, most: int) -> int:
        food = self._ecosystem.food
        surplus = max(len(food) - most, 0)
        del food[len(food) - surplus :]  # the newest: what a leak has added
        return surplus

    def _trim_replay(self) -> int:
        """Bound the buffer again; what it may hold stays: a healthy buffer loses nothing."""
        before = len(self._learner.replay)
        kept = _newest(self._learner.replay, REPLAY_CAPACITY)
        self._learner.replay = deque(kept, maxlen=REPLAY_CAPACITY)
        return before - len(kept)

    def _trim_events(self, name: str, clear: bool) -> int:
        """Bound the list again; an emergency empties it."""
        events = self._ecosystem.events
        before = len(events[name])
        kept = [] if clear else _newest(events[name], EVENTS_KEPT)
        events[name] = deque(kept, maxlen=EVENTS_KEPT)
        return before - len(kept)


def _newest(items: MutableSequence[Any], most: int) -> list[Any]:
    return list(items)[-most:]
