"""A server on loopback that answers as a test says, and keeps what it was sent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Request:
    """What was sent; `at` is the monotonic second of its arrival."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Server:
    port: int
    requests: list[Request]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


Respond = Callable[[Request], tuple[int, bytes]]


@contextmanager
def serving(
    respond: Respond = lambda _: (200, b""),
    *,
    port: int = 0,
    content_type: str = "text/plain",
    most: int | None = None,
) -> Iterator[Server]:
    """A server, until the context ends; an answer hangs after `most` bytes."""
    requests: list[Request] = []
    closing = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            requests.append(Request(self.command, self.path, self.headers, body))
            status, answer = respond(requests[-1])
            with suppress(OSError):  # the client has left
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer[:most])
                if most is not None and len(answer) > most:
                    closing.wait(30)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield Server(server.server_port, requests)
        finally:
            closing.set()
            server.shutdown()
            thread.join()
