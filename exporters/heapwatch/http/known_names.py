"""Host names that a service of the stack accepts, against DNS rebinding.

The owner of a web page can make its name resolve to this machine; the browser then treats the service as part
of the page. IP addresses cannot be misused so, and are accepted if the service listens on more than loopback.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
REFUSAL = "not a name of this machine; if it should be, name it in HEAPWATCH_ALLOWED_HOSTS"
_ANY_ADDRESS = "*"

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]


def known_names(bind: str, environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Accepted hosts of a service that listens on `bind`, with those of HEAPWATCH_ALLOWED_HOSTS."""
    allowed = environ.get("HEAPWATCH_ALLOWED_HOSTS", "").lower().split(",")
    names = {*LOOPBACK, *(name.strip().partition(":")[0] for name in allowed)} - {_ANY_ADDRESS}
    if bind not in LOOPBACK:
        names |= {bind.lower(), socket.gethostname().lower(), _ANY_ADDRESS}
    return frozenset(names - {""})


def is_known(authority: str, names: frozenset[str]) -> bool:
    """Whether a Host header, `host[:port]`, names this machine."""
    host = authority.strip().lower()
    host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if host in names - {_ANY_ADDRESS}:
        return True
    with suppress(ValueError):
        return _ANY_ADDRESS in names and bool(ipaddress.ip_address(host))
    return False


class KnownNames:
    """ASGI middleware: answers 421 to requests for another host, and closes such web sockets.

    Args:
        app: the application.
        names: see `known_names`.

    """

    def __init__(self, app: _App, names: frozenset[str]) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Pass on requests for this machine."""
        if scope["type"] not in ("http", "websocket") or self._is_ours(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            body = b'{"error":"' + REFUSAL.encode() + b'"}'
            length = str(len(body)).encode()
            headers = [(b"content-type", b"application/json"), (b"content-length", length)]
            await send({"type": "http.response.start", "status": 421, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    def _is_ours(self, scope: _Message) -> bool:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        return len(hosts) == 1 and is_known(hosts[0].decode("latin-1"), self._names)
