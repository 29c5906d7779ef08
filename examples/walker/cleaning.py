"""What the Walker trainer gives up when it is asked to clean up."""

from collections import deque
from collections.abc import Callable

from examples.walker.ecosystem import EVENTS_KEPT, POOL_SIZE, Ecosystem
from examples.walker.leaking import Leaks
from examples.walker.learner import REPLAY_CAPACITY, Learner

REGULAR_FOOD = 30
EMERGENCY_FOOD = 10


class Cleaner:
    """Regular and emergency cleanup of the physics world, the replay buffer and the event lists.

    A regular cleanup for one resource leaves the others alone; one for memory goes through all.
    """

    def __init__(self, ecosystem: Ecosystem, learner: Learner, leaks: Leaks) -> None:
        self._ecosystem = ecosystem
        self._learner = learner
        self._leaks = leaks

    def clean(self, action: str, resource: str = "") -> dict[str, int]:
        """Clean up for `action` (regular or emergency) of `resource`; returns how many of each went."""
        emergency = action == "emergency"
        steps: dict[str, tuple[str, Callable[[], int]]] = {
            "bodies": ("bodies", lambda: self._destroy_bodies(emergency)),
            "entities": (
                "food_sources",
                lambda: self._trim_food(EMERGENCY_FOOD if emergency else REGULAR_FOOD),
            ),
            "buffer": ("experiences", self._trim_replay),
            "events": ("events", lambda: self._trim_events(emergency)),
            "memory": ("history", self._drop_history),
        }
        chosen = steps.keys() if emergency or resource == "memory" else {resource} & steps.keys()
        return {removed: step() for wanted, (removed, step) in steps.items() if wanted in (chosen or steps)}

    def _destroy_bodies(self, emergency: bool) -> int:
        ecosystem = self._ecosystem
        surplus = emergency or len(ecosystem.spare_parts) > POOL_SIZE
        return ecosystem.destroy_orphans() + (ecosystem.drop_spare_parts() if surplus else 0)

    def _drop_history(self) -> int:
        dropped = len(self._leaks.history)
        self._leaks.history.clear()  # nobody reads it, so there is nothing to be gentle about
        return dropped

    def _trim_food(self, most: int) -> int:
        food = self._ecosystem.food
        surplus = max(len(food) - most, 0)
        del food[len(food) - surplus :]  # the newest: what a leak has added
        return surplus

    def _trim_replay(self) -> int:
        """Bound the buffer again; what it may hold stays: a healthy buffer loses nothing."""
        before = len(self._learner.replay)
        self._learner.replay = deque(self._learner.replay, maxlen=REPLAY_CAPACITY)
        return before - len(self._learner.replay)

    def _trim_events(self, clear: bool) -> int:
        """Bound the lists again; an emergency empties them."""
        events = self._ecosystem.events
        before = sum(map(len, events.values()))
        for name in events:
            events[name] = deque(() if clear else events[name], maxlen=EVENTS_KEPT)
        return before - sum(map(len, events.values()))
