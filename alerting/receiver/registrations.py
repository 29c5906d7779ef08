"""The trainers that registered over the network, for Prometheus's HTTP service discovery.

A registration lasts LIFETIME seconds and is renewed three times in this time. Registrations are kept in
memory. After a restart the list is withheld until every trainer has had time to renew; meanwhile Prometheus
keeps its targets. A trainer that is late with its renewal, and has not said that it ends, is kept as lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from heapwatch import lost
from heapwatch.http.client import RENEWAL_SECONDS
from heapwatch.lost import Lost

LIFETIME = 3 * RENEWAL_SECONDS
_LATE = _KNOWN_AFTER = 1.25 * RENEWAL_SECONDS
# Each renewal is a signed request, and `signing.Verifier` remembers 4096 of them a minute.
MOST = 4000


class TooManyTrainers(Exception):
    """The largest number of trainers is registered."""


class Registrations:
    """Addresses, `host:port`, and when they expire.

    Args:
        lost_dir: where trainers are kept that fell silent.
        steady: a clock, in seconds.

    """

    def __init__(self, lost_dir: Path, steady: Callable[[], float] = time.monotonic) -> None:
        self._lost_dir = lost_dir
        self._steady = steady
        self._began = steady()
        self._until: dict[str, float] = {}
        self._late: set[str] = set()

    def add(self, address: str) -> None:
        """Register or renew. Raises TooManyTrainers."""
        self._forget()
        if address not in self._until and len(self._until) >= MOST:
            raise TooManyTrainers(f"{MOST} trainers are registered already")
        self._until[address] = self._steady() + LIFETIME
        self._late.discard(address)
        lost.forget(self._lost_dir, address)

    def remove(self, address: str) -> None:
        """Remove a registration, if there is one."""
        self._until.pop(address, None)
        self._late.discard(address)
        lost.forget(self._lost_dir, address)

    def addresses(self) -> list[str] | None:
        """All registered addresses; None shortly after the start, while the list may be incomplete."""
        if self._steady() - self._began < _KNOWN_AFTER:
            return None
        self._forget()
        return sorted(self._until)

    def _forget(self) -> None:
        now = self._steady()
        for address, until in self._until.items():
            if until - now < LIFETIME - _LATE and address not in self._late:
                self._late.add(address)
                with suppress(OSError):  # the disk is full: the trainer is missed only
                    lost.write(self._lost_dir, Lost(address, "", lost.SILENT, time.time()))
        self._late &= self._until.keys()
        self._until = {address: until for address, until in self._until.items() if until > now}
