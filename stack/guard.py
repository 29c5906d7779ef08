"""A proxy in front of Prometheus or Alertmanager that rejects requests of web pages of other sites.

    python -m heapwatch.stack.guard HOST PORT PROGRAM [OPTIONS...]
    python -m heapwatch.stack.guard HOST PORT --to HOST:PORT

Neither program checks the headers Host and Origin. The guard listens at the published address and forwards
only requests that no page of another site can have sent. The first form runs the program on a free loopback
port, under a path that cannot be guessed; guard and program end together. In the second form the program runs
where no browser reaches it, in a container of its own.
"""

from __future__ import annotations

import asyncio
import ctypes
import secrets
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from http import HTTPStatus

from heapwatch.http.known_names import REFUSAL, is_known, known_names

_MAX_HEAD_BYTES = 64 * 1024
_HEAD_SECONDS = 10.0
_MAX_CONNECTIONS = 256
_CHUNK = 64 * 1024
_SAFE = ("GET", "HEAD")
_PR_SET_PDEATHSIG = 1


class Refusal(Exception):
    """A request that is not forwarded, with the status and the reason."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class Guard:
    """Forwards requests to the program.

    Args:
        upstream: host and port of the program.
        prefix: the path under which the program answers.
        names: allowed values of the Host header, see `heapwatch.http.known_names`.

    """

    def __init__(self, upstream: tuple[str, int], prefix: str, names: frozenset[str]) -> None:
        self._upstream = upstream
        self._prefix = prefix
        self._names = names
        self._open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request on a connection, then close it."""
        self._open += 1
        try:
            if self._open > _MAX_CONNECTIONS:
                raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, "every connection is busy")
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_SECONDS)
            await self._pass_on(self.checked(head), reader, writer)
        except Refusal as refusal:
            with suppress(OSError):
                writer.write(_answer(refusal))
                await writer.drain()
        except (asyncio.TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass  # the client is slow, has left, or sends no HTTP
        finally:
            self._open -= 1
            with suppress(OSError):
                writer.close()

    def checked(self, head: bytes) -> bytes:
        """The head of a request as it is forwarded to the program.

        Raises:
            Refusal: a page of another site may have sent it, or it is malformed.

        """
        lines = head.decode("latin-1").split("\r\n")[:-2]
        method, _, rest = lines[0].partition(" ")
        target, _, version = rest.rpartition(" ")
        odd = any(character in line for line in lines for character in "\r\n\0")
        if odd or not version.startswith("HTTP/1.") or not target.startswith("/"):
            raise Refusal(HTTPStatus.BAD_REQUEST, "not an HTTP request for a path")
        fields = [line.partition(":") for line in lines[1:]]
        headers = {name.lower(): value.strip() for name, _, value in fields}
        if len([name for name, _, _ in fields if name.lower() == "host"]) > 1:
            raise Refusal(HTTPStatus.BAD_REQUEST, "more than one Host header")
        self._check_host(headers.get("host", ""))
        self._check_site(method, headers)
        kept = [f"{name}:{value}" for name, _, value in fields if name.lower() not in _HOP]
        return "\r\n".join(
            [f"{method} {self._prefix}{target} {version}", *kept, "Connection: close", "", ""]
        ).encode("latin-1")

    def _check_host(self, host: str) -> None:
        if not is_known(host, self._names):
            raise Refusal(HTTPStatus.MISDIRECTED_REQUEST, REFUSAL)

    def _check_site(self, method: str, headers: dict[str, str]) -> None:
        """Reject requests of other sites: their pages may link here, but neither read nor change anything."""
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != headers["host"].lower():
            raise Refusal(HTTPStatus.FORBIDDEN, "requests of another origin are not passed on")
        site = headers.get("sec-fetch-site", "none").lower()
        if method not in _SAFE and site not in ("same-origin", "none"):
            raise Refusal(HTTPStatus.FORBIDDEN, "cross-site requests may not change anything")

    async def _pass_on(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answers, asks = await asyncio.open_connection(*self._upstream)
        except OSError:
            raise Refusal(HTTPStatus.BAD_GATEWAY, "the program does not answer yet") from None
        asks.write(head)
        body = asyncio.create_task(_copy(reader, asks))
        try:
            await _copy(answers, writer)
        finally:
            body.cancel()
            asks.close()


_HOP = frozenset({"connection", "keep-alive", "proxy-connection", "upgrade"})


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await source.read(_CHUNK):
            sink.write(chunk)
            await sink.drain()


def _answer(refusal: Refusal) -> bytes:
    body = f"{refusal}\n".encode()
    head = (
        f"HTTP/1.1 {refusal.status.value} {refusal.status.phrase}\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


async def run(host: str, port: int, command: list[str]) -> int:
    """Serve until the program ends, and return its exit status."""
    upstream, prefix = _free_port(), f"/{secrets.token_urlsafe(24)}"
    guard = Guard(("127.0.0.1", upstream), prefix, known_names(host))
    server = await asyncio.start_server(guard.serve, host, port, limit=_MAX_HEAD_BYTES)
    address = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
    options = (
        f"--web.listen-address=127.0.0.1:{upstream}",
        f"--web.route-prefix={prefix}",
        f"--web.external-url=http://{address}:{port}/",
    )
    program = subprocess.Popen([*command, *options], preexec_fn=_die_with_parent)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, program.send_signal, number)
    async with server:
        return await asyncio.to_thread(program.wait)


async def forward(host: str, port: int, to: str) -> int:
    """Forward to a program at `to`, `host:port`, until this process is ended."""
    name, _, number = to.rpartition(":")
    guard = Guard((name, int(number)), "", known_names(host))
    server = await asyncio.start_server(guard.serve, host, port, limit=_MAX_HEAD_BYTES)
    async with server:
        await server.serve_forever()
    return 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _die_with_parent() -> None:
    # Kill at once: the program holds locks that its successor needs, and its write-ahead log allows it.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    at, command = (sys.argv[1], int(sys.argv[2])), sys.argv[3:]
    sys.exit(asyncio.run(forward(*at, command[1]) if command[0] == "--to" else run(*at, command)))
