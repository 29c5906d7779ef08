"""The trainer's own lines about its health: every so often, with what exceeds a limit, and of a cleanup."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping

import psutil

from examples.common.command import profile
from examples.walker.ecosystem import Ecosystem
from heapwatch.cli.reporter import described, named
from heapwatch.judge.component import MEMORY, Component
from heapwatch.judge.limits import BODIES, SEVERITIES, limit_of, profile_named, threshold_alert
from heapwatch.text.numbers import megabytes

LINE_SECONDS = 20.0
FOOD = Component("entities", "food_sources")
FOOD_NOTED = 30  # below the limit at which it alerts
EMERGENCY_BYTES, EMERGENCY_BODIES = 2e9, 1500
# Growth counts over ten minutes, five at least: a healthy world grows and eats ten food sources within one.
_GROWTH_LINES, _LEAST_LINES = 30, 15
_GROWTH_OF = {"memory": "MEMORY", "bodies": "BODY", "entities": "FOOD"}

Levels = Mapping[Component, float]


class HealthLog:
    """Prints the state of the world every `LINE_SECONDS`, and at problems; `clock` is in seconds."""

    def __init__(self, ecosystem: Ecosystem, clock: Callable[[], float] = time.monotonic) -> None:
        self._ecosystem = ecosystem
        self._process = psutil.Process()
        self._limits = profile_named(profile("walker"))
        self._history: deque[tuple[float, Levels]] = deque(maxlen=_GROWTH_LINES + 1)
        self._clock = clock
        self._next = clock()

    def step(self, steps: int) -> None:
        """Print the line when it is due, with what exceeds a limit and bodies that have no owner."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + LINE_SECONDS
        types, food = self._ecosystem.body_types(), len(self._ecosystem.food)
        memory, bodies = self._process.memory_info().rss, sum(types.values())
        print(
            f"{time.strftime('%H:%M:%S')}: Memory={megabytes(memory)}, "
            f"Bodies={bodies}, Food={food}, Step={steps}",
            flush=True,
        )
        counts = ", ".join(f"{kind.capitalize()}={count}" for kind, count in types.items())
        print(f"   Body Types: {counts}", flush=True)
        if orphans := types["unknown"]:
            print(f"   ORPHANS: {orphans} bodies that nobody owns", flush=True)
        by_type = {Component("bodies", kind): float(count) for kind, count in types.items()}
        levels = {MEMORY: float(memory), BODIES: float(bodies), **by_type, FOOD: float(food)}
        self._history.append((now, levels))
        for _, line in sorted(self._exceeded(levels), key=lambda found: -found[0]):
            print(f"   {line}", flush=True)

    def emergency(self) -> str:
        """Why an emergency cleanup is needed now; empty if it is not."""
        bodies = self._ecosystem.world.bodyCount
        memory = self._process.memory_info().rss
        if bodies <= EMERGENCY_BODIES and memory <= EMERGENCY_BYTES:
            return ""
        print("   EMERGENCY: Triggering emergency cleanup!", flush=True)
        return f"{bodies} bodies, {memory / 1e6:.0f} MB"

    def cleaned(self, action: str, removed: Mapping[str, int]) -> None:
        """Print what a cleanup removed, an emergency in capitals; growth counts anew from then on."""
        self._history.clear()
        what = ", ".join(f"{count} {name}" for name, count in removed.items() if count) or "nothing"
        name = "EMERGENCY cleanup" if action == "emergency" else "Routine cleanup"
        print(f"   {name}: {what} removed", flush=True)

    def _exceeded(self, levels: Levels) -> Iterator[tuple[int, str]]:
        """The severity of what exceeds a limit, as its place in SEVERITIES, and its line."""
        for component, level in levels.items():
            alert = threshold_alert(component, level, limit_of(component, self._limits.levels) or {})
            if alert is not None:
                yield SEVERITIES.index(alert.severity), described(alert)
            elif component == FOOD and level > FOOD_NOTED:
                yield 0, f"WARNING: food_sources = {level:.0f} (> {FOOD_NOTED})"
            if line := self._growth(component, level):
                yield 0, line

    def _growth(self, component: Component, level: float) -> str:
        """The line of a component that has grown faster than its limit; empty if it has not."""
        if len(self._history) <= _LEAST_LINES:
            return ""
        then, before = self._history[0]
        grown = level - before[component]
        rate = grown / (self._history[-1][0] - then) * 60
        if rate <= (limit_of(component, self._limits.growth) or {}).get("minute", math.inf):
            return ""
        amount, per_minute = f"{grown:.0f}", f"{rate:.1f}"
        if component == MEMORY:
            amount, per_minute = megabytes(grown), megabytes(rate)
        what = _GROWTH_OF[component.resource]
        return f"{what} GROWTH ALERT: {named(component)} +{amount} ({per_minute}/min)"
