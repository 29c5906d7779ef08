"""What the guard before Prometheus and Alertmanager passes on, and what not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping

import httpx
import pytest

from heapwatch_stack import guard as module
from heapwatch_stack.guard import guarded
from tests.support.http_server import Request, Server, serving
from tests.support.ports import free_port

NAMED = "monitoring.example:443, other"


def echo(request: Request) -> tuple[int, bytes]:
    return 200, f"{request.method} {request.path} ".encode() + request.body


@pytest.fixture
def program() -> object:
    with serving(echo) as server:
        yield server


def ask(
    program: Server,
    path: str = "/",
    headers: Mapping[str, str] = {},
    *,
    bind: str = "127.0.0.1",
    **request: object,
) -> httpx.Response:
    """The answer to one request, which by default asks for the guard's own address."""

    async def play() -> httpx.Response:
        transport = httpx.ASGITransport(guarded(f"{program.url}/secret", bind))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:9090") as client:
            method = str(request.pop("method", "GET"))
            return await client.request(method, path, headers=headers, **request)  # type: ignore[arg-type]

    return asyncio.run(play())


def test_a_request_gets_the_path_that_no_page_can_guess(program: Server) -> None:
    answer = ask(program, "/graph%2F?g0=%20a&b", method="POST", content=b"whole")
    assert (answer.status_code, answer.text) == (200, "POST /secret/graph%2F?g0=%20a&b whole")


@pytest.mark.parametrize(
    ("bind", "host", "known"),
    [
        *(("127.0.0.1", host, True) for host in ("localhost:9090", "[::1]:9090", "127.0.0.1")),
        *(("127.0.0.1", host, False) for host in ("evil.example:9090", "10.0.0.1:9090", "")),
        ("0.0.0.0", "evil.example", False),
        *(("0.0.0.0", host, True) for host in ("10.0.0.1:9090", "monitoring.example")),
    ],
)
def test_only_names_of_this_machine_and_given_ones_pass(
    program: Server, monkeypatch: pytest.MonkeyPatch, bind: str, host: str, known: bool
) -> None:
    monkeypatch.setenv("HEAPWATCH_ALLOWED_HOSTS", NAMED if bind == "0.0.0.0" else "")
    assert ask(program, headers={"Host": host}, bind=bind).status_code == (200 if known else 421)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Origin", "http://127.0.0.1:8000"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ],
)
def test_no_other_sites_page_may_change_anything(program: Server, name: str, value: str) -> None:
    assert ask(program, "/api/v2/silences", {name: value}, method="POST").status_code == 403


def test_a_page_may_link_here_and_its_own_page_may_post(program: Server) -> None:
    assert ask(program, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200
    own = {"Origin": "http://127.0.0.1:9090", "Sec-Fetch-Site": "same-origin"}
    assert ask(program, "/api/v2/silences", own, method="POST").status_code == 200


def test_a_body_is_not_passed_on_beyond_a_size(program: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_BODY_BYTES", 4)
    assert ask(program, method="POST", content=b"four").text.endswith(" four")
    assert ask(program, method="POST", content=b"whole").status_code == 413


def test_a_request_that_does_not_end_is_refused(program: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REQUEST_SECONDS", 0.1)

    async def never_ending() -> object:
        yield b"a"
        await asyncio.sleep(60)

    assert ask(program, method="POST", content=never_ending()).status_code == 408


def test_a_program_that_does_not_answer_yet_is_said() -> None:
    with serving(echo) as server:
        pass
    answer = ask(server)
    assert (answer.status_code, answer.text) == (502, "the program does not answer yet\n")


def test_it_ends_with_its_program_and_has_its_exit_status() -> None:
    guard = [sys.executable, "-m", "heapwatch_stack.guard", "127.0.0.1", str(free_port())]
    assert subprocess.run([*guard, "sh", "-c", "exit 3"], check=False, timeout=60).returncode == 3
