"""An HTTP protocol for uvicorn with limits on slow, idle and many clients, which uvicorn lacks."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MAX_HEAD_BYTES = 64 << 10
_ANSWER_SECONDS = 60.0  # for a client to read its answer
# Below the usual limit of 1024 open files. One address may have enough for Alertmanager, Prometheus and the
# browsers behind it.
MAX_CONNECTIONS = 512
MAX_FROM_ONE = 128


@dataclass
class Connections:
    """What all connections of one server may do together.

    Attributes:
        request_timeout: seconds in which a request must be complete.
        max_waiting: number of connections with an incomplete request.
        max_connections: number of connections.
        max_from_one: number of connections from one address.
        waiting: those with an incomplete request, longest first.
        idle: those without a request, longest first, by address.
        counts: number of connections by address.

    """

    request_timeout: float
    max_waiting: int
    max_connections: int = MAX_CONNECTIONS
    max_from_one: int = MAX_FROM_ONE
    waiting: dict[_GuardedProtocol, None] = field(default_factory=dict)
    idle: defaultdict[str, dict[_GuardedProtocol, None]] = field(default_factory=lambda: defaultdict(dict))
    counts: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    def admit(self, new: _GuardedProtocol, peer: str) -> None:
        """Count a new connection; the one that has been idle for longest makes room for it, else it ends."""
        self.counts[peer] += 1
        if self.counts[peer] > self.max_from_one:
            next(iter(self.idle[peer]), new).abort()
        elif sum(self.counts.values()) > self.max_connections:
            longest: dict[_GuardedProtocol, None] = max(self.idle.values(), key=len, default={})
            next(iter(longest), new).abort()

    def wait(self, one: _GuardedProtocol) -> None:
        """Note an incomplete request; the one that has waited longest makes room for it."""
        if len(self.waiting) >= self.max_waiting:
            next(iter(self.waiting)).abort()
        self.waiting[one] = None

    def forget(self, one: _GuardedProtocol, peer: str) -> None:
        """A connection has ended."""
        self.idle[peer].pop(one, None)
        self.counts[peer] -= 1
        if not self.counts[peer]:
            del self.counts[peer], self.idle[peer]


class _GuardedProtocol(HttpToolsProtocol):
    """One connection. `guarded` makes the class that knows the others."""

    shared: Connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._peer = str((transport.get_extra_info("peername") or ("",))[0])
        self._gone = False
        self._timer: asyncio.TimerHandle | None = None
        self._head_bytes: int | None = 0
        self.shared.admit(self, self._peer)
        if not self._gone:
            self.shared.idle[self._peer][self] = None
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._head_bytes is not None:
            self._head_bytes += len(data)
            if self._head_bytes > _MAX_HEAD_BYTES:
                self.abort()

    def handle_websocket_upgrade(self) -> None:
        self._forget()  # a web socket lasts as long as its page; its own protocol asks for signs of life
        super().handle_websocket_upgrade()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = 0
        self._wait()

    def on_headers_complete(self) -> None:
        self._head_bytes = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self.shared.waiting.pop(self, None)
        if not self._gone:
            self.shared.idle[self._peer].pop(self, None)
            self._within(_ANSWER_SECONDS)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self not in self.shared.waiting:
            self._stop_timer()
        if not self._gone:
            self.shared.idle[self._peer].pop(self, None)
            self.shared.idle[self._peer][self] = None
        super().on_response_complete()

    def abort(self) -> None:
        """Close the connection at once, without an answer."""
        self._forget()
        cast(Any, self.transport).abort()

    def _wait(self) -> None:
        if self not in self.shared.waiting and not self._gone:
            self.shared.wait(self)
            self._within(self.shared.request_timeout)

    def _within(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self.abort)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _forget(self) -> None:
        self.shared.waiting.pop(self, None)
        self._stop_timer()
        if not self._gone:
            self._gone = True
            self.shared.forget(self, self._peer)


def guarded(connections: Connections) -> type[asyncio.Protocol]:
    """A protocol class for one server that closes slow, idle and surplus connections.

    A connection is closed if
    - its request is not complete in time, counted from the connection for the first;
    - the head of its request is over 64 KiB;
    - its answer is not read within a minute;
    - too many connections have an incomplete request: the one that has waited longest;
    - there are too many connections, in all or from one address: the one that has been idle for longest, or
      the new one if none is idle.
    """
    return type("GuardedProtocol", (_GuardedProtocol,), {"shared": connections})
