"""Limits and a check of the Host and Origin headers for all services that run on uvicorn."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from heapwatch.http.addresses import REFUSAL, is_known

# Below the usual limit of 1024 open files. h11 bounds the head of a request.
LIMITS: dict[str, Any] = {"http": "h11", "limit_concurrency": 512}
_FOREIGN = "requests of another origin are refused (Origin)"


class KnownNames:
    """ASGI middleware: answers 421 to a request for another host, 403 to one of another origin's page.

    Web sockets begin with such a request.
    """

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on requests for this machine."""
        refused = self._refused(scope) if scope["type"] in ("http", "websocket") else None
        if refused is None:
            await self._app(scope, receive, send)
        else:
            status, reason = refused
            await JSONResponse({"error": reason}, status)(scope, receive, send)

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        hosts, origins = (_values(scope, name) for name in (b"host", b"origin"))
        if len(hosts) != 1 or not is_known(hosts[0], self._names):
            return 421, REFUSAL
        if any(origin.partition("://")[2] != hosts[0] for origin in origins):
            return 403, _FOREIGN
        return None


def _values(scope: Scope, header: bytes) -> list[str]:
    return [value.decode("latin-1").strip().lower() for name, value in scope["headers"] if name == header]
