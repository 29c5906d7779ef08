"""One collection of the exposition at a time, shared by all concurrent requests."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterable
from typing import Protocol

from prometheus_client import Metric
from prometheus_client.exposition import choose_encoder


class FamilySource(Protocol):
    """Yields metric families, as a Prometheus registry does."""

    def collect(self) -> Iterable[Metric]:
        """Collect the families now."""


class CollectionStuck(Exception):
    """A collector has not returned."""


class Snapshot:
    """The families of one collection; each encoding is made once."""

    def __init__(self, families: list[Metric]) -> None:
        self.families = families
        self._encodings: dict[tuple[str, bool], bytes] = {}
        self._encoding = threading.Lock()

    def collect(self) -> list[Metric]:
        """Return the families: encoders use a snapshot as a registry."""
        return self.families

    def encode(self, accept: str, compress: bool) -> tuple[bytes, str]:
        """Return the body and content type that an Accept header asks for."""
        encoder, content_type = choose_encoder(accept)
        with self._encoding:
            key = (content_type, compress)
            if key not in self._encodings:
                body = encoder(self)
                self._encodings[key] = gzip.compress(body, compresslevel=4, mtime=0) if compress else body
            return self._encodings[key], content_type


class Snapshots:
    """Collects on demand: a thousand concurrent scrapes cost the trainer a few collections."""

    def __init__(self, exposition: FamilySource) -> None:
        self._exposition = exposition
        self._collecting = threading.Lock()
        self._started = float("-inf")
        self._latest = Snapshot([])

    def take(self, timeout: float) -> Snapshot:
        """Return a snapshot whose collection began after this call.

        Args:
            timeout: how long to wait for another thread's collection, in seconds.

        Raises:
            CollectionStuck: that collection did not end in time.

        """
        asked = time.monotonic()
        if not self._collecting.acquire(timeout=timeout):
            running = time.monotonic() - self._started
            raise CollectionStuck(f"a collector has been running for {running:.0f} s; see its watched source")
        try:
            if self._started < asked:
                self._started = time.monotonic()
                self._latest = Snapshot(list(self._exposition.collect()))
            return self._latest
        except BaseException:
            self._started = float("-inf")  # nothing to share
            raise
        finally:
            self._collecting.release()
