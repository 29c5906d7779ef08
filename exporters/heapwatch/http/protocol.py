"""An HTTP protocol for uvicorn with limits on slow, idle and many clients, which uvicorn lacks."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MAX_HEAD_BYTES = 64 << 10
_ANSWER_SECONDS = 60.0  # for a client to read its answer
# Below the usual limit of 1024 open files. One address may have enough for Alertmanager, Prometheus and the
# browsers behind it.
MAX_CONNECTIONS = 512
MAX_FROM_ONE = 128


def guarded(
    request_timeout: float,
    max_waiting: int,
    max_connections: int = MAX_CONNECTIONS,
    max_from_one: int = MAX_FROM_ONE,
) -> type[asyncio.Protocol]:
    """A protocol class that closes slow, idle and surplus connections.

    A connection is closed if
    - its request is not complete after `request_timeout` seconds, counted from the connection for the first;
    - the head of its request is over 64 KiB;
    - its answer is not read within a minute;
    - more than `max_waiting` connections have an incomplete request: the one that has waited longest;
    - there are more than `max_connections`, or more than `max_from_one` from one address: the one that has
      been idle for longest, or the new one if none is idle.
    """
    waiting: dict[GuardedProtocol, None] = {}
    idle: defaultdict[str, dict[GuardedProtocol, None]] = defaultdict(dict)  # longest idle first
    counts: defaultdict[str, int] = defaultdict(int)

    class GuardedProtocol(HttpToolsProtocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._peer = str((transport.get_extra_info("peername") or ("",))[0])
            self._gone = False
            self._timer: asyncio.TimerHandle | None = None
            self._head_bytes: int | None = 0
            counts[self._peer] += 1
            if counts[self._peer] > max_from_one:
                self._make_room(idle[self._peer])
            elif sum(counts.values()) > max_connections:
                self._make_room(max(idle.values(), key=len, default={}))
            if not self._gone:
                idle[self._peer][self] = None
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._head_bytes is not None:
                self._head_bytes += len(data)
                if self._head_bytes > _MAX_HEAD_BYTES:
                    self._abort()

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
            waiting.pop(self, None)
            if not self._gone:
                idle[self._peer].pop(self, None)
                self._within(_ANSWER_SECONDS)
            super().on_message_complete()

        def on_response_complete(self) -> None:
            if self not in waiting:
                self._stop_timer()
            if not self._gone:
                idle[self._peer].pop(self, None)
                idle[self._peer][self] = None
            super().on_response_complete()

        def _wait(self) -> None:
            if self in waiting or self._gone:
                return
            if len(waiting) >= max_waiting:
                next(iter(waiting))._abort()
            waiting[self] = None
            self._within(request_timeout)

        def _within(self, seconds: float) -> None:
            self._stop_timer()
            self._timer = self.loop.call_later(seconds, self._abort)

        def _stop_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _make_room(self, candidates: dict[GuardedProtocol, None]) -> None:
            next(iter(candidates), self)._abort()

        def _forget(self) -> None:
            waiting.pop(self, None)
            self._stop_timer()
            if self._gone:
                return
            self._gone = True
            idle[self._peer].pop(self, None)
            counts[self._peer] -= 1
            if not counts[self._peer]:
                del counts[self._peer], idle[self._peer]

        def _abort(self) -> None:
            self._forget()
            cast(Any, self.transport).abort()

    return GuardedProtocol
