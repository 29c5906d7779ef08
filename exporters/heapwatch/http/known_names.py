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
FOREIGN = "requests of another origin are refused (Origin)"
_ANY_ADDRESS = "*"

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_App = Callable[[_Message, _Receive, _Send], Awaitable[None]]


def known_names(bind: str, environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Accepted hosts of a service that listens on `bind`, with those of HEAPWATCH_ALLOWED_HOSTS."""
    names = {*LOOPBACK, *(name.partition(":")[0] for name in allowed_hosts(environ))} - {_ANY_ADDRESS}
    if bind not in LOOPBACK:
        names |= {bind.lower(), socket.gethostname().lower(), _ANY_ADDRESS}
    return frozenset(names - {""})


def allowed_hosts(environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """The hosts in HEAPWATCH_ALLOWED_HOSTS, some with a port."""
    given = environ.get("HEAPWATCH_ALLOWED_HOSTS", "").lower().split(",")
    return frozenset(name.strip() for name in given) - {""}


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
            return 403, FOREIGN
        return None


def _values(scope: _Message, header: bytes) -> list[str]:
    return [value.decode("latin-1").strip().lower() for name, value in scope["headers"] if name == header]
