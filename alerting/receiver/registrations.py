"""Trainers that register over the network: who they are, for Prometheus's HTTP service discovery.

A registration lasts LIFETIME seconds and is renewed three times in them. It is kept in memory: after a
restart the list is not given out before every trainer had time to renew; Prometheus keeps what it has.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from heapwatch.http.client import RENEWAL_SECONDS

LIFETIME = 3 * RENEWAL_SECONDS
_KNOWN_AFTER = 1.25 * RENEWAL_SECONDS
# Each renewal is a signed request, of which `signing.Verifier` remembers 4096 a minute.
MOST = 4000


class TooManyTrainers(Exception):
    """As many as may are registered; the message says so."""


class Registrations:
    """Addresses, `host:port`, and when they expire."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady = steady
        self._began = steady()
        self._until: dict[str, float] = {}

    def add(self, address: str) -> None:
        """Register or renew. Raises TooManyTrainers."""
        self._forget()
        if address not in self._until and len(self._until) >= MOST:
            raise TooManyTrainers(f"{MOST} trainers are registered already")
        self._until[address] = self._steady() + LIFETIME

    def remove(self, address: str) -> None:
        """Take a registration back; harmless when there is none."""
        self._until.pop(address, None)

    def addresses(self) -> list[str] | None:
        """Everything registered; None shortly after the start, as long as it may not be all."""
        if self._steady() - self._began < _KNOWN_AFTER:
            return None
        self._forget()
        return sorted(self._until)

    def _forget(self) -> None:
        now = self._steady()
        self._until = {address: until for address, until in self._until.items() if until > now}
