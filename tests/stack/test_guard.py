"""What the guard before Prometheus and Alertmanager passes on; tests/attacks tries it with real programs."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import pytest

from heapwatch.http.addresses import known_names
from heapwatch_stack import guard as module
from heapwatch_stack.guard import Guard, Refusal


async def unreachable() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    raise OSError


LOOPBACK = Guard(unreachable, "/secret", known_names("127.0.0.1"))
NAMED = {"HEAPWATCH_ALLOWED_HOSTS": "monitoring.example:443, other"}
OPEN = Guard(unreachable, "/secret", known_names("0.0.0.0", NAMED))


def head(*fields: str, line: str = "GET /graph?g0=1 HTTP/1.1") -> bytes:
    return "\r\n".join([line, *fields, "", ""]).encode()


def test_a_request_gets_the_path_that_no_page_can_guess_and_ends_its_connection() -> None:
    passed = LOOPBACK.checked(head("Host: 127.0.0.1:9090", "Connection: keep-alive", "Accept: */*"))
    lines = passed.decode().split("\r\n")
    assert lines[0] == "GET /secret/graph?g0=1 HTTP/1.1"
    assert "Accept: */*" in lines
    assert "Connection: close" in lines
    assert "Connection: keep-alive" not in lines


@pytest.mark.parametrize(
    ("guard", "host", "known"),
    [
        *((LOOPBACK, host, True) for host in ("localhost:9090", "[::1]:9090", "127.0.0.1")),
        *((LOOPBACK, host, False) for host in ("evil.example:9090", "10.0.0.1:9090", "")),
        *((OPEN, host, False) for host in ("evil.example", "10.0.0.1.evil.example")),
        *((OPEN, host, True) for host in ("10.0.0.1:9090", "[2001:db8::1]:9090")),
        *((OPEN, host, True) for host in ("monitoring.example", "other:9090")),
    ],
)
def test_only_names_of_this_machine_and_given_ones_pass(guard: Guard, host: str, known: bool) -> None:
    if known:
        assert guard.checked(head(f"Host: {host}"))
        return
    with pytest.raises(Refusal) as refused:
        guard.checked(head(f"Host: {host}"))
    assert refused.value.status is HTTPStatus.MISDIRECTED_REQUEST


@pytest.mark.parametrize(
    "fields",
    [
        ("Origin: https://evil.example",),
        ("Origin: null",),
        ("Origin: http://127.0.0.1:8000",),
        ("Sec-Fetch-Site: cross-site",),
        ("Sec-Fetch-Site: same-site",),
    ],
)
def test_no_other_sites_page_may_change_anything(fields: tuple[str, ...]) -> None:
    with pytest.raises(Refusal) as refused:
        LOOPBACK.checked(head("Host: 127.0.0.1:9090", *fields, line="POST /api/v2/silences HTTP/1.1"))
    assert refused.value.status is HTTPStatus.FORBIDDEN


def test_a_page_may_link_here_and_its_own_page_may_post() -> None:
    assert LOOPBACK.checked(head("Host: 127.0.0.1:9090", "Sec-Fetch-Site: cross-site"))
    own = ("Host: 127.0.0.1:9093", "Origin: http://127.0.0.1:9093", "Sec-Fetch-Site: same-origin")
    assert LOOPBACK.checked(head(*own, line="POST /api/v2/silences HTTP/1.1"))


@pytest.mark.parametrize(
    "request_head",
    [
        b"GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / SPDY\r\nHost: 127.0.0.1\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: y\nHost: evil.example\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_what_two_parsers_could_read_in_two_ways_is_refused(request_head: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        LOOPBACK.checked(request_head)
    assert refused.value.status is HTTPStatus.BAD_REQUEST


POST = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
LENGTH = POST + b"Content-Length: 5\r\n\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionResetError:
        return b"cut off"
    finally:
        writer.close()


def guarded(request: bytes, never_ending: int = 0) -> bytes:
    """What comes back for a request, beside so many that never end; the program answers with what it got."""

    async def program(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        end = b"0\r\n\r\n" if b"chunked" in head else b"whole" if b"Content-Length" in head else b""
        writer.write(await reader.readuntil(end) if end else b"no body")
        writer.close()

    async def play() -> bytes:
        inside = await asyncio.start_server(program, "127.0.0.1", 0)
        at = inside.sockets[0].getsockname()[1]
        guard = Guard(lambda: asyncio.open_connection("127.0.0.1", at), "", known_names("127.0.0.1"))
        server = await asyncio.start_server(guard.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        others = [await asyncio.open_connection("127.0.0.1", port) for _ in range(never_ending)]
        for _, writer in others:
            writer.write(LENGTH)
        answer = await ask(port, request)
        server.close()
        inside.close()
        return answer

    return asyncio.run(play())


@pytest.mark.parametrize(
    ("request_sent", "answer"),
    [
        (POST + b"\r\n", b"no body"),
        (LENGTH + b"whole", b"whole"),
        (CHUNKED + b"3\r\nwho\r\n2;x=y\r\nle\r\n0\r\n\r\n", b"3\r\nwho\r\n2;x=y\r\nle\r\n0\r\n\r\n"),
        (CHUNKED + b"x\r\n", b"HTTP/1.1 400 Bad Request"),
        (POST + b"Content-Length: 99999999999\r\n\r\n", b"HTTP/1.1 413 Request Entity Too Large"),
        (CHUNKED + b"ffffffffff\r\n", b"HTTP/1.1 413 Request Entity Too Large"),
    ],
)
def test_a_body_is_passed_on_as_it_comes_and_not_beyond_a_size(request_sent: bytes, answer: bytes) -> None:
    assert guarded(request_sent).partition(b"\r\nContent-Type")[0] == answer


@pytest.mark.parametrize(
    "begun", [b"", b"POST / HT", LENGTH, LENGTH + b"who", CHUNKED, CHUNKED + b"5\r\nwho"]
)
def test_a_request_that_does_not_end_is_cut_off(monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    monkeypatch.setattr(module, "_REQUEST_SECONDS", 0.2)
    assert guarded(begun) in (b"", b"cut off")


def test_clients_that_never_end_do_not_keep_another_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_CONNECTIONS", 4)
    assert guarded(LENGTH + b"whole", never_ending=10) == b"whole"
