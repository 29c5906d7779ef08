"""An HTTP protocol for uvicorn that does not wait for slow clients; uvicorn has no time-out for a request."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_MAX_HEAD_BYTES = 64 << 10


def guarded(request_timeout: float, max_waiting: int) -> type[asyncio.Protocol]:
    """A protocol class that closes connections whose client is too slow.

    That is: when a request, head and body, is not complete `request_timeout` seconds after it began (the
    first one: after the connection was made), when its head is over 64 KiB, and, of more than `max_waiting`
    connections with an incomplete request, the one that has waited longest.
    """
    waiting: dict[GuardedProtocol, asyncio.TimerHandle] = {}

    class GuardedProtocol(HttpToolsProtocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._head_bytes: int | None = 0
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._arrived()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._head_bytes is not None:
                self._head_bytes += len(data)
                if self._head_bytes > _MAX_HEAD_BYTES:
                    self._abort()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._head_bytes = 0
            self._wait()

        def on_headers_complete(self) -> None:
            self._head_bytes = None
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self._arrived()
            super().on_message_complete()

        def _wait(self) -> None:
            if self in waiting:
                return
            if len(waiting) >= max_waiting:
                next(iter(waiting))._abort()
            waiting[self] = self.loop.call_later(request_timeout, self._abort)

        def _arrived(self) -> None:
            timer = waiting.pop(self, None)
            if timer:
                timer.cancel()

        def _abort(self) -> None:
            self._arrived()
            cast(Any, self.transport).abort()

    return GuardedProtocol
