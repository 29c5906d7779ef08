"""The trainer's own lines about its health: every so often, of orphans, of an emergency cleanup."""

import time

import psutil

from examples.walker.ecosystem import Ecosystem

LINE_SECONDS = 20.0
FOOD_WARNING = 30
EMERGENCY_BYTES, EMERGENCY_BODIES = 2e9, 1500


class HealthLog:
    """Prints the state of the world every `LINE_SECONDS`, and at problems."""

    def __init__(self, ecosystem: Ecosystem) -> None:
        self._ecosystem = ecosystem
        self._process = psutil.Process()
        self._next = time.monotonic()

    def step(self, steps: int) -> None:
        """Print the line when it is due, with bodies that have no owner."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LINE_SECONDS
        ecosystem, types = self._ecosystem, self._ecosystem.body_types()
        print(
            f"{time.strftime('%H:%M:%S')}: Memory={self._process.memory_info().rss / 1e6:.1f}MB, "
            f"Bodies={sum(types.values())}, Food={len(ecosystem.food)}, Step={steps}",
            flush=True,
        )
        counts = ", ".join(f"{kind.capitalize()}={count}" for kind, count in types.items())
        print(f"   Body Types: {counts}", flush=True)
        if orphans := types["unknown"]:
            print(f"   ORPHANS: {orphans} bodies that nobody owns", flush=True)
        if len(ecosystem.food) > FOOD_WARNING:
            print(f"   WARNING: food_sources = {len(ecosystem.food)} (> {FOOD_WARNING})", flush=True)

    def emergency(self) -> str:
        """Why an emergency cleanup is needed now; empty if it is not."""
        bodies = self._ecosystem.world.bodyCount
        memory = self._process.memory_info().rss
        if bodies <= EMERGENCY_BODIES and memory <= EMERGENCY_BYTES:
            return ""
        print("   EMERGENCY: Triggering emergency cleanup!", flush=True)
        return f"{bodies} bodies, {memory / 1e6:.0f} MB"

    @staticmethod
    def cleaned(action: str, removed: dict[str, int]) -> None:
        """Print what a cleanup removed; an emergency in capitals."""
        what = ", ".join(f"{count} {name}" for name, count in removed.items() if count) or "nothing"
        name = "EMERGENCY cleanup" if action == "emergency" else "Routine cleanup"
        print(f"   {name}: {what} removed", flush=True)
