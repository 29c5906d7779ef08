"""What uvicorn lacks: limits on slow, idle and many clients, and a check of the host that they ask for."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from heapwatch.http.addresses import REFUSAL, is_known

_MAX_HEAD_BYTES = 64 << 10
_ANSWER_SECONDS = 60.0  # for a client to read its answer
# Below the usual limit of 1024 open files. One address may have enough for Alertmanager, Prometheus and the
# browsers behind it.
MAX_CONNECTIONS = 512
MAX_FROM_ONE = 128
_FOREIGN = "requests of another origin are refused (Origin)"

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]


@dataclass
class _Connections:
    """All connections of one server.

    Attributes:
        request_timeout: seconds in which a request must be complete.
        max_waiting: number of connections with an incomplete request.
        waiting: those with an incomplete request, longest first.
        idle: those without a request, longest first, by address.
        counts: number of connections by address.

    """

    request_timeout: float
    max_waiting: int
    waiting: dict[_GuardedProtocol, None] = field(default_factory=dict)
    idle: defaultdict[str, dict[_GuardedProtocol, None]] = field(default_factory=lambda: defaultdict(dict))
    counts: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    def admit(self, new: _GuardedProtocol, peer: str) -> None:
        """Count a new connection; the one that has been idle for longest makes room for it, else it ends."""
        self.counts[peer] += 1
        if self.counts[peer] > MAX_FROM_ONE:
            next(iter(self.idle[peer]), new).abort()
        elif sum(self.counts.values()) > MAX_CONNECTIONS:
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

    shared: _Connections

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


def guarded(request_timeout: float, max_waiting: int) -> type[asyncio.Protocol]:
    """A protocol class for one server that closes slow, idle and surplus connections.

    A connection is closed if
    - its request is not complete in `request_timeout` seconds, counted from the connection for the first;
    - the head of its request is over 64 KiB;
    - its answer is not read within a minute;
    - over `max_waiting` connections have an incomplete request: the one that has waited longest;
    - there are too many connections, in all or from one address: the one that has been idle for longest, or
      the new one if none is idle.
    """
    shared = _Connections(request_timeout, max_waiting)
    return type("GuardedProtocol", (_GuardedProtocol,), {"shared": shared})


class KnownNames:
    """ASGI middleware: answers 421 to requests for another host, and closes such web sockets.

    With `same_origin` also 403 to requests that a page of another origin makes.
    """

    def __init__(self, app: _App, names: frozenset[str], *, same_origin: bool = False) -> None:
        self._app = app
        self._names = names
        self._same_origin = same_origin

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Pass on requests for this machine."""
        refused = self._refused(scope) if scope["type"] in ("http", "websocket") else None
        if refused is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            status, reason = refused
            body = b'{"error":"' + reason.encode() + b'"}'
            length = str(len(body)).encode()
            headers = [(b"content-type", b"application/json"), (b"content-length", length)]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    def _refused(self, scope: _Message) -> tuple[int, str] | None:
        hosts, origins = (_values(scope, name) for name in (b"host", b"origin"))
        if len(hosts) != 1 or not is_known(hosts[0], self._names):
            return 421, REFUSAL
        if self._same_origin and any(origin.partition("://")[2] != hosts[0] for origin in origins):
            return 403, _FOREIGN
        return None


def _values(scope: _Message, header: bytes) -> list[str]:
    return [value.decode("latin-1").strip().lower() for name, value in scope["headers"] if name == header]
