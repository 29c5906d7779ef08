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
# Each renewal is a signed request; of those `signing.Verifier` remembers 8192 a minute, 1024 of one sender.
MOST = 4000
MOST_FROM_ONE = 500


class TooManyTrainers(Exception):
    """The largest number of trainers is registered, in all or by this sender."""


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
        self._sender: dict[str, object] = {}
        self._late: set[str] = set()

    def add(self, address: str, sender: object = None) -> None:
        """Register or renew. Raises TooManyTrainers."""
        self._forget()
        if address not in self._until:
            if len(self._until) >= MOST:
                raise TooManyTrainers(f"{MOST} trainers are registered already")
            if sum(sender == other for other in self._sender.values()) >= MOST_FROM_ONE:
                raise TooManyTrainers(
                    f"{MOST_FROM_ONE} trainers of this address and user are registered already"
                )
        self._sender[address] = sender
        self._until[address] = self._steady() + LIFETIME
        self._late.discard(address)
        lost.forget(self._lost_dir, address)

    def remove(self, address: str) -> None:
        """Remove a registration, if there is one."""
        self._until.pop(address, None)
        self._sender.pop(address, None)
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
        self._sender = {address: self._sender[address] for address in self._until}
