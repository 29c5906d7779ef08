"""A proxy in front of Prometheus or Alertmanager that rejects requests of web pages of other sites.

    python -m heapwatch_stack.guard HOST PORT PROGRAM [OPTIONS...]
    python -m heapwatch_stack.guard HOST PORT --to HOST:PORT

Neither program checks the headers Host and Origin, and their `--web.config.file` does not change that. The
guard listens at the published address and forwards only requests that no page of another site can have sent.

The first form runs the program on a free loopback port, under a path that cannot be guessed. Guard and
program end together. In the second form it runs where no browser reaches it, in a container of its own.
"""

from __future__ import annotations

import asyncio
import ctypes
import secrets
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress

import httpx
import uvicorn
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from heapwatch.http.addresses import known_names
from heapwatch.http.asgi import LIMITS, KnownNames

_MAX_BODY_BYTES = 16 << 20  # several thousand alerts
_REQUEST_SECONDS = 10.0  # for a client to send its whole request
_ANSWER_SECONDS = 150.0  # Prometheus ends a query after two minutes
_END_SECONDS = 15.0  # supervisord waits for 20
_SAFE = ("GET", "HEAD")
# Headers of one connection, not of the request.
_HOP = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})
_PR_SET_PDEATHSIG = 1


class Proxy:
    """ASGI application: answers with what the program at the address `to` answers to the same request."""

    def __init__(self, to: str) -> None:
        self._to = httpx.URL(to)
        self._client = httpx.AsyncClient(timeout=httpx.Timeout(_ANSWER_SECONDS, pool=None), trust_env=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        try:
            answer = await self._answer(Request(scope, receive))
        except HTTPException as refusal:
            answer = PlainTextResponse(f"{refusal.detail}\n", refusal.status_code)
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        site = request.headers.get("sec-fetch-site", "none").lower()
        if request.method not in _SAFE and site not in ("same-origin", "none"):
            raise HTTPException(403, "cross-site requests may not change anything")
        try:
            body = await asyncio.wait_for(_body(request), _REQUEST_SECONDS)
        except asyncio.TimeoutError:
            raise HTTPException(408, f"the request was not complete in {_REQUEST_SECONDS:g} s") from None
        path = self._to.raw_path.rstrip(b"/") + request.scope["raw_path"]
        query = request.scope["query_string"]
        url = self._to.copy_with(raw_path=path + b"?" + query if query else path)
        headers = [(name, value) for name, value in request.headers.raw if name.lower() not in _HOP]
        try:
            outgoing = self._client.build_request(request.method, url, headers=headers, content=body)
            upstream = await self._client.send(outgoing, stream=True)
        except httpx.TransportError:
            raise HTTPException(502, "the program does not answer yet") from None
        answer = StreamingResponse(
            upstream.aiter_raw(), upstream.status_code, background=BackgroundTask(upstream.aclose)
        )
        answer.raw_headers = [one for one in upstream.headers.raw if one[0].lower() not in _HOP]
        return answer


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > _MAX_BODY_BYTES:
            raise HTTPException(413, f"more than {_MAX_BODY_BYTES} bytes")
    return bytes(body)


def guarded(to: str, host: str) -> ASGIApp:
    """The proxy to the address `to`, for requests to a name of this machine, from no other origin."""
    return KnownNames(Proxy(to), known_names(host))


def server(to: str, host: str, port: int) -> uvicorn.Server:
    """Serves the guarded program at `to` on `host` and `port`."""
    return uvicorn.Server(
        uvicorn.Config(
            guarded(to, host),
            host=host,
            port=port,
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            date_header=False,
            **LIMITS,
            timeout_graceful_shutdown=1,
        )
    )


def run(host: str, port: int, command: list[str]) -> int:
    """Serve until the program ends, and return its exit status."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        inside = f"127.0.0.1:{probe.getsockname()[1]}"
    prefix = f"/{secrets.token_urlsafe(24)}"
    address = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
    options = [
        f"--web.listen-address={inside}",
        f"--web.route-prefix={prefix}",
        f"--web.external-url=http://{address}:{port}/",
    ]
    program = subprocess.Popen([*command, *options], preexec_fn=_die_with_parent)
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: program.send_signal(received))
    front = server(f"http://{inside}{prefix}", host, port)

    def end_with_program() -> None:
        program.wait()
        front.should_exit = True

    threading.Thread(target=end_with_program, daemon=True).start()
    front.run()  # which hands SIGTERM and SIGINT on to the handlers above when it has ended
    program.terminate()
    with suppress(subprocess.TimeoutExpired):
        return program.wait(_END_SECONDS)
    return 1  # the end of this process kills it


def _die_with_parent() -> None:
    # Kill at once: the program holds locks that its successor needs, and its write-ahead log allows it.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main(arguments: list[str]) -> int:
    """Run as the module's description says; returns the program's exit status."""
    host, port, *command = arguments
    if command[0] == "--to":
        server(f"http://{command[1]}", host, int(port)).run()
        return 0
    return run(host, int(port), command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
