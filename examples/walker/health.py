"""The trainer's own lines about its health: every so often, of orphans, of an emergency cleanup."""

import time

import psutil

from examples.walker.ecosystem import Ecosystem

LINE_SECONDS = 20.0


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
        ecosystem = self._ecosystem
        bodies, owned = ecosystem.world.bodyCount, ecosystem.owned_bodies()
        orphans = bodies - sum(map(len, owned.values()))
        print(
            f"{time.strftime('%H:%M:%S')}: Memory={self._process.memory_info().rss / 1e6:.1f}MB, "
            f"Bodies={bodies}, Food={len(ecosystem.food)}, Step={steps}",
            flush=True,
        )
        types = ", ".join(f"{kind.capitalize()}={len(group)}" for kind, group in owned.items())
        print(f"   Body Types: {types}, Terrain=0, Unknown={orphans}", flush=True)
        if orphans:
            print(f"   ORPHANS: {orphans} bodies that nobody owns", flush=True)

    @staticmethod
    def cleaned(action: str, removed: dict[str, int]) -> None:
        """Print what a cleanup removed; an emergency in capitals."""
        what = ", ".join(f"{count} {name}" for name, count in removed.items() if count) or "nothing"
        name = "EMERGENCY cleanup" if action == "emergency" else "Routine cleanup"
        print(f"   {name}: {what} removed", flush=True)
