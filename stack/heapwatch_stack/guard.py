"""A proxy in front of Prometheus or Alertmanager that rejects requests of web pages of other sites.

    python -m heapwatch_stack.guard HOST PORT [--socket FILE] PROGRAM [OPTIONS...]
    python -m heapwatch_stack.guard HOST PORT --to HOST:PORT

Neither program checks the headers Host and Origin, and Alertmanager waits for its clients without an end;
their `--web.config.file` changes neither. The guard listens at the published address, forwards only requests
that no page of another site can have sent, and lets no client keep another from being served.

The first form runs the program: with `--socket` on a Unix socket that only this user can open (Alertmanager),
else on a free loopback port, under a path that cannot be guessed. Guard and program end together. In the
second form the program runs where no browser reaches it, in a container of its own.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path

from heapwatch.http.addresses import REFUSAL, is_known, known_names
from heapwatch.runtime.own_files import make_private

_MAX_HEAD_BYTES = 64 * 1024
_MAX_BODY_BYTES = 16 << 20  # several thousand alerts
_REQUEST_SECONDS = 10.0  # for a client to send its whole request
_EXCHANGE_SECONDS = 150.0  # Prometheus ends a query after two minutes
_MAX_CONNECTIONS = 256
_CHUNK = 64 * 1024
_SAFE = ("GET", "HEAD")
_PR_SET_PDEATHSIG = 1

_Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class Refusal(Exception):
    """A request that is not forwarded, with the status and the reason."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class Guard:
    """Forwards requests to the program.

    A request must be complete within _REQUEST_SECONDS, the whole exchange within _EXCHANGE_SECONDS. When all
    connections are in use, a new one takes the place of the oldest. `prefix` is the path under which the
    program answers, `names` are allowed in the Host header.
    """

    def __init__(self, connect: _Connect, prefix: str, names: frozenset[str]) -> None:
        self._connect = connect
        self._prefix = prefix
        self._names = names
        self._open: dict[asyncio.Task[None] | None, None] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request on a connection, then close it."""
        task = asyncio.current_task()
        self._open[task] = None
        self._end_surplus()
        try:
            await asyncio.wait_for(self._exchange(reader, writer), _EXCHANGE_SECONDS)
        except (asyncio.TimeoutError, asyncio.CancelledError):
            writer.transport.abort()  # what the client has not read by now is dropped
        finally:
            del self._open[task]
            with suppress(OSError):
                writer.close()

    def _end_surplus(self) -> None:
        if len(self._open) > _MAX_CONNECTIONS:
            oldest = next(iter(self._open))
            if oldest is not None:
                oldest.cancel()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        until = time.monotonic() + _REQUEST_SECONDS
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _REQUEST_SECONDS)
            await self._pass_on(self.checked(head), reader, writer, until)
        except Refusal as refusal:
            with suppress(OSError):
                writer.write(_answer(refusal))
                await writer.drain()
        except (asyncio.TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass  # the client is slow, has left, or sends no HTTP

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
        names = [name.lower() for name, _, _ in fields]
        if names.count("host") > 1:
            raise Refusal(HTTPStatus.BAD_REQUEST, "more than one Host header")
        if sum(name in _LENGTHS for name in names) > 1:
            raise Refusal(HTTPStatus.BAD_REQUEST, "more than one length")
        if not is_known(headers.get("host", ""), self._names):
            raise Refusal(HTTPStatus.MISDIRECTED_REQUEST, REFUSAL)
        _check_site(method, headers)
        kept = [f"{name}:{value}" for name, _, value in fields if name.lower() not in _HOP]
        return "\r\n".join(
            [f"{method} {self._prefix}{target} {version}", *kept, "Connection: close", "", ""]
        ).encode("latin-1")

    async def _pass_on(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, until: float
    ) -> None:
        try:
            answers, asks = await self._connect()
        except OSError:
            raise Refusal(HTTPStatus.BAD_GATEWAY, "the program does not answer yet") from None
        try:
            asks.write(head)
            await asyncio.wait_for(_send_body(head, reader, asks), until - time.monotonic())
            while chunk := await answers.read(_CHUNK):
                writer.write(chunk)
                await writer.drain()
        finally:
            asks.close()


_HOP = frozenset({"connection", "keep-alive", "proxy-connection", "upgrade"})
_LENGTHS = frozenset({"content-length", "transfer-encoding"})
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,15})[ \t]*\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked[ \t]*\r\n", re.IGNORECASE)


def _check_site(method: str, headers: dict[str, str]) -> None:
    """Reject requests of other sites: their pages may link here, but neither read nor change anything."""
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2].lower() != headers["host"].lower():
        raise Refusal(HTTPStatus.FORBIDDEN, "requests of another origin are not passed on")
    site = headers.get("sec-fetch-site", "none").lower()
    if method not in _SAFE and site not in ("same-origin", "none"):
        raise Refusal(HTTPStatus.FORBIDDEN, "cross-site requests may not change anything")


async def _send_body(head: bytes, reader: asyncio.StreamReader, asks: asyncio.StreamWriter) -> None:
    """Pass on the body of a request; raises Refusal if it is too long or has no valid length."""
    left = _MAX_BODY_BYTES
    chunked = _CHUNKED.search(head) is not None
    while True:
        if chunked:
            line = await reader.readuntil(b"\r\n")
            asks.write(line)
            size = _size(line.partition(b";")[0], 16) + len(b"\r\n")
        else:
            found = _LENGTH.search(head)
            size = _size(found[1], 10) if found else 0
        left -= size
        if left < 0:
            raise Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {_MAX_BODY_BYTES} bytes")
        last = not chunked or size == len(b"\r\n")
        while size:
            part = await reader.readexactly(min(size, _CHUNK))
            size -= len(part)
            asks.write(part)
            await asks.drain()
        if last:
            return


def _size(text: bytes, base: int) -> int:
    try:
        return int(text, base)
    except ValueError:
        raise Refusal(HTTPStatus.BAD_REQUEST, "not a length") from None


def _answer(refusal: Refusal) -> bytes:
    body = f"{refusal}\n".encode()
    head = (
        f"HTTP/1.1 {refusal.status.value} {refusal.status.phrase}\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


async def run(host: str, port: int, command: list[str], file: Path | None) -> int:
    """Serve until the program ends, and return its exit status; `file`: the Unix socket it listens on."""
    with _activated(file) if file else _on_free_port() as inside:
        guard = Guard(inside.connect, inside.prefix, known_names(host))
        server = await asyncio.start_server(guard.serve, host, port, limit=_MAX_HEAD_BYTES)
        address = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
        options = [*inside.options, f"--web.external-url=http://{address}:{port}/"]
        program = subprocess.Popen(
            [*inside.before, *command, *options], preexec_fn=_die_with_parent, pass_fds=inside.descriptors
        )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, program.send_signal, number)
    async with server:
        return await asyncio.to_thread(program.wait)


async def forward(host: str, port: int, to: str) -> None:
    """Forward to a program at `to`, `host:port`, until this process is ended."""
    name, _, number = to.rpartition(":")
    guard = Guard(partial(asyncio.open_connection, name, int(number)), "", known_names(host))
    async with await asyncio.start_server(guard.serve, host, port, limit=_MAX_HEAD_BYTES) as server:
        await server.serve_forever()


@dataclass(frozen=True)
class _Inside:
    """Where the program listens: how it is started there, and reached."""

    connect: _Connect
    prefix: str
    options: tuple[str, ...]
    before: tuple[str, ...] = ()
    descriptors: tuple[int, ...] = ()


@contextmanager
def _activated(file: Path) -> Iterator[_Inside]:
    """A Unix socket in a folder of mode 0700, handed over as systemd does: sd_listen_fds(3)."""
    make_private(file.parent)
    file.unlink(missing_ok=True)
    # The path of a socket may have 107 bytes. This one is short.
    short = f"/proc/self/fd/{os.open(file.parent, os.O_PATH | os.O_DIRECTORY)}/{file.name}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(short)
        listener.listen(_MAX_CONNECTIONS)
        handed = listener.fileno()
        start = f'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@" 3<&{handed} {handed}<&-'
        yield _Inside(
            partial(asyncio.open_unix_connection, short),
            "",
            ("--web.systemd-socket", "--web.route-prefix=/"),
            ("/bin/sh", "-c", start, "sh"),
            (handed,),
        )


@contextmanager
def _on_free_port() -> Iterator[_Inside]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    prefix = f"/{secrets.token_urlsafe(24)}"
    options = (f"--web.listen-address=127.0.0.1:{port}", f"--web.route-prefix={prefix}")
    yield _Inside(partial(asyncio.open_connection, "127.0.0.1", port), prefix, options)


def _die_with_parent() -> None:
    # Kill at once: the program holds locks that its successor needs, and its write-ahead log allows it.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main(arguments: list[str]) -> int:
    """Run as the module's description says; returns the program's exit status."""
    host, port, *command = arguments
    if command[0] == "--to":
        asyncio.run(forward(host, int(port), command[1]))
        return 0
    file = Path(command[1]) if command[0] == "--socket" else None
    return asyncio.run(run(host, int(port), command[2:] if file else command, file))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
