"""What the guard before Prometheus and Alertmanager passes on; tests/attacks tries it with real programs."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from heapwatch.http.known_names import known_names
from heapwatch.stack.guard import Guard, Refusal

LOOPBACK = Guard(("127.0.0.1", 1), "/secret", known_names("127.0.0.1"))
OPEN = Guard(("127.0.0.1", 1), "/secret", known_names("0.0.0.0"))


def head(*fields: str, line: str = "GET /graph?g0=1 HTTP/1.1") -> bytes:
    return "\r\n".join([line, *fields, "", ""]).encode()


def test_a_request_gets_the_path_that_no_page_can_guess_and_ends_its_connection() -> None:
    passed = LOOPBACK.checked(head("Host: 127.0.0.1:9090", "Connection: keep-alive", "Accept: */*"))
    lines = passed.decode().split("\r\n")
    assert lines[0] == "GET /secret/graph?g0=1 HTTP/1.1"
    assert "Accept: */*" in lines
    assert "Connection: close" in lines
    assert "Connection: keep-alive" not in lines


@pytest.mark.parametrize("host", ["localhost:9090", "[::1]:9090", "127.0.0.1"])
def test_loopback_names_pass(host: str) -> None:
    assert LOOPBACK.checked(head(f"Host: {host}"))


@pytest.mark.parametrize(
    ("guard", "host"),
    [
        (LOOPBACK, "evil.example:9090"),
        (LOOPBACK, "10.0.0.1:9090"),
        (LOOPBACK, ""),
        (OPEN, "evil.example"),
        (OPEN, "10.0.0.1.evil.example"),
    ],
)
def test_other_names_do_not(guard: Guard, host: str) -> None:
    with pytest.raises(Refusal) as refused:
        guard.checked(head(f"Host: {host}"))
    assert refused.value.status is HTTPStatus.MISDIRECTED_REQUEST


def test_open_to_the_network_it_answers_addresses_and_names_it_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HEAPWATCH_ALLOWED_HOSTS", "monitoring.example:443, other")
    guard = Guard(("127.0.0.1", 1), "/secret", known_names("0.0.0.0"))
    for host in ("10.0.0.1:9090", "[2001:db8::1]:9090", "monitoring.example", "other:9090"):
        assert guard.checked(head(f"Host: {host}"))


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
    ],
)
def test_what_two_parsers_could_read_in_two_ways_is_refused(request_head: bytes) -> None:
    with pytest.raises(Refusal) as refused:
        LOOPBACK.checked(request_head)
    assert refused.value.status is HTTPStatus.BAD_REQUEST
