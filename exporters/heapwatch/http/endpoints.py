"""The endpoints of a trainer: one method each, over the standard library's HTTP parser."""

from __future__ import annotations

import io
import json
import logging
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, ClassVar
from urllib.parse import urlsplit

from heapwatch.http import guards
from heapwatch.http.deadline import UntilDeadline
from heapwatch.http.guards import MAX_REQUEST_BYTES, Refusal
from heapwatch.http.signing import Request
from heapwatch.http.status import Status, landing_page
from heapwatch.measure.gpu import allow_capture
from heapwatch.measure.introspection.names import type_of
from heapwatch.runtime.cleanup import CleanupQueue, QueueFull, Ticket
from heapwatch.runtime.exposition import CollectionStuck, Snapshot, Snapshots
from heapwatch.runtime.failures import raised
from heapwatch.text.numbers import duration

REQUEST_SECONDS = 5.0  # a request must be complete by then, even if its bytes keep arriving
COLLECTION_SECONDS = 8.0  # below Prometheus' scrape_timeout of 10 s, so that it gets the error message
HEALTH_SECONDS = 1.0

logger = logging.getLogger("heapwatch")


@dataclass
class ServedTrainer:
    """The parts of a trainer that its endpoints use.

    Attributes:
        snapshots: for `/metrics`.
        status: for `/performance_status`.
        cleanup_queue: takes the requests of `POST /force_cleanup`.
        explain: returns the response of `/explain`.
        token: returns the secret that requests for a cleanup are signed with; None refuses every cleanup.
        local_cleanup: whether commands of this machine may request a cleanup without the token. The server
            must listen on loopback alone.

    """

    snapshots: Snapshots
    status: Status
    cleanup_queue: CleanupQueue
    explain: Callable[[], Mapping[str, Any]]
    token: Callable[[], str | None] = lambda: None
    local_cleanup: bool = False


class _CutShort(Exception):
    """The request ended before it was complete."""


class _Request(UntilDeadline):
    """The bytes of one request: at most MAX_REQUEST_BYTES, within REQUEST_SECONDS, and no early end."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection, REQUEST_SECONDS)
        self._remaining_bytes = MAX_REQUEST_BYTES

    def readinto(self, buffer: Any) -> int:
        if not self._remaining_bytes:
            raise guards.too_long()
        count = super().readinto(memoryview(buffer)[: self._remaining_bytes])
        if not count:
            raise _CutShort
        self._remaining_bytes -= count
        return count


class Endpoints(BaseHTTPRequestHandler):
    """One request and one response a connection, which prevents pipelining and request smuggling."""

    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # 0.9 would answer garbage without a status line
    routes: ClassVar[dict[str, str]] = {
        "/": "_landing",
        "/metrics": "_metrics",
        "/performance_status": "_status",
        "/explain": "_explain",
        "/healthz": "_health",
        "/readyz": "_readiness",
        "/force_cleanup": "_force_cleanup",
    }

    def __init__(
        self, trainer: ServedTrainer, names: frozenset[str], forwarded: frozenset[str], *connection: Any
    ) -> None:
        self.trainer = trainer
        self.names = names  # under which it accepts requests
        self.forwarded = forwarded  # each `host:port` that a proxy forwards to it
        super().__init__(*connection)  # which answers the request

    def setup(self) -> None:
        """Read the request within its limits."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_Request(self.connection))

    def handle(self) -> None:
        """Answer the connection's one request."""
        allow_capture()
        self.close_connection = True
        self.command, self.requestline, self.request_version = "", "", "HTTP/1.1"
        try:
            self.raw_requestline = self.rfile.readline()
            if self.parse_request():
                self._answer()
        except (TimeoutError, _CutShort):
            self.send_error(HTTPStatus.REQUEST_TIMEOUT, "the request was not complete in time")
        except Refusal as refusal:
            self._send_json(refusal.status, {"error": refusal.detail}, refusal.headers)
        except CollectionStuck as stuck:
            self._send_json(HTTPStatus.SERVICE_UNAVAILABLE, {"error": str(stuck)})
        except OSError:
            pass  # the client went away
        except BaseException as error:
            logger.warning("%s failed: %s", self.command, raised(error))
            message = f"the trainer's exporter failed: {type_of(error)}"
            self._send_json(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": message})

    def _answer(self) -> None:
        guards.check_host(self.headers, self.names)
        try:
            path = urlsplit(self.path).path
        except ValueError:
            raise Refusal(HTTPStatus.BAD_REQUEST, "the request target is not a path") from None
        method = self.routes.get(path)
        if method is None:
            raise Refusal(HTTPStatus.NOT_FOUND, f"no such page; available: {', '.join(self.routes)}")
        allowed = ["POST"] if path == "/force_cleanup" else ["GET", "HEAD"]
        if self.command not in allowed:
            methods = ", ".join(allowed)
            raise Refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} answers {methods}", {"Allow": methods})
        getattr(self, method)()

    def _collected(self, timeout_seconds: float) -> Snapshot:
        return self.trainer.snapshots.take(timeout_seconds)

    def _metrics(self) -> None:
        snapshot = self._collected(COLLECTION_SECONDS)
        self.trainer.status.observe(snapshot.families)
        body, content_type = snapshot.encode(self.headers.get("Accept", ""))
        self._send(HTTPStatus.OK, body, content_type, {"Vary": "Accept"})

    def _status(self) -> None:
        snapshot = self._collected(COLLECTION_SECONDS)
        self._send_json(HTTPStatus.OK, self.trainer.status.document(snapshot.families))

    def _explain(self) -> None:
        self._send_json(HTTPStatus.OK, self.trainer.explain())

    def _health(self) -> None:
        try:
            snapshot = self._collected(HEALTH_SECONDS)
        except CollectionStuck as stuck:
            self._send_json(HTTPStatus.OK, {"status": "ok", "training": "unknown", "detail": str(stuck)})
            return
        self._send_json(HTTPStatus.OK, self.trainer.status.health(snapshot.families))

    def _readiness(self) -> None:
        """503 while training stalls, although the server responds."""
        snapshot = self._collected(HEALTH_SECONDS)
        health = self.trainer.status.health(snapshot.families)
        if health["training"] != "stalled":
            self._send_json(HTTPStatus.OK, health | {"status": "ready"})
            return
        reason = f"training has made no progress for {duration(health['seconds_since_progress'])}"
        document = health | {"status": "not ready", "reason": reason}
        self._send_json(HTTPStatus.SERVICE_UNAVAILABLE, document)

    def _landing(self) -> None:
        try:
            snapshot = self._collected(HEALTH_SECONDS)
            page = landing_page(self.trainer.status.document(snapshot.families))
        except CollectionStuck as stuck:
            page = landing_page({}, problem=str(stuck))
        policy = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        self._send(HTTPStatus.OK, page.encode(), "text/html; charset=utf-8", policy)

    def _force_cleanup(self) -> None:
        trainer = self.trainer
        body = self.rfile.read(guards.body_length(self.headers))  # what is unread would reset the connection
        guards.check_browser(self.headers)
        guards.check_addressee(self.headers, self.connection.getsockname()[1], self.forwarded)
        if not (trainer.local_cleanup and guards.needs_no_token(self.headers)):
            signed_request = Request(self.command, (self.headers.get("Host") or "").strip(), self.path, body)
            guards.check_authority(self.headers, trainer.token(), signed_request)
        request, seconds = guards.parse_cleanup(body, needs_id=guards.is_signed(self.headers))
        try:
            ticket = trainer.cleanup_queue.submit(request)
        except QueueFull as full:
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(full), {"Retry-After": "10"}) from None
        result = ticket.wait(seconds)
        if result is not None:
            self._send_json(HTTPStatus.OK, result.as_dict())
        else:
            self._send_json(
                HTTPStatus.ACCEPTED, _pending(ticket, trainer.cleanup_queue.seconds_since_safe_point())
            )

    def _send_json(
        self, status: HTTPStatus, document: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> None:
        body = json.dumps(document, indent=2, default=str).encode() + b"\n"
        self._send(status, body, "application/json", headers)

    def _send(
        self, status: HTTPStatus, body: bytes, content_type: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self.connection.settimeout(REQUEST_SECONDS)
        self.send_response(status)
        for name, value in {
            "Content-Type": content_type,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Connection": "close",
            **(headers or {}),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer with an error that the HTTP parser found, as JSON."""
        status = HTTPStatus(code)
        with suppress(OSError):  # the client may be gone
            self._send_json(status, {"error": message or status.phrase})

    def version_string(self) -> str:
        """Name the server without the versions of its parts."""
        return "heapwatch"

    def log_message(self, format: str, *args: Any) -> None:
        """Log no requests: the terminal belongs to the trainer, and request lines are untrusted."""


def _pending(ticket: Ticket, seconds_since_safe_point: float | None) -> dict[str, Any]:
    running = ticket.state == "running"
    detail = (
        "it is still running" if running else "the trainer has not reached a safe point yet; it stays queued"
    )
    pending: dict[str, Any] = {
        "status": "pending",
        "request_id": ticket.request.request_id,
        "action": ticket.request.action,
        "trigger": ticket.request.trigger,
        "detail": f"{detail}; repeat the request with the same request_id",
    }
    if seconds_since_safe_point is not None:
        pending["seconds_since_safe_point"] = round(seconds_since_safe_point, 3)
    return pending
