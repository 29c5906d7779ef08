"""By which names a service answers; the receiver and the viewer are tried with this middleware too."""

import asyncio

import pytest

from heapwatch.http.addresses import known_names
from heapwatch.http.asgi import KnownNames


def ask(kind, *hosts, origins=()):
    """What the middleware sends, and whether the application was asked."""
    sent, asked = [], []

    async def app(*_):
        asked.append(True)

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    headers = [(b"host", host.encode()) for host in hosts]
    headers += [(b"origin", origin.encode()) for origin in origins]
    middleware = KnownNames(app, known_names("127.0.0.1", {}))
    asyncio.run(middleware({"type": kind, "headers": headers}, receive, send))
    return sent, bool(asked)


@pytest.mark.parametrize("kind", ["http", "websocket", "lifespan"])
def test_what_names_this_machine_passes(kind):
    assert ask(kind, "127.0.0.1:3009") == ([], True)


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize("hosts", [("evil.example",), (), ("127.0.0.1", "evil.example")])
def test_a_request_of_another_name_is_answered_421(kind, hosts):
    sent, asked = ask(kind, *hosts)
    assert sent[0]["status"] == 421
    assert not asked


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:8888", "http://localhost:3009", "null", ""]
)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_a_page_of_another_origin_is_refused(kind, origin):
    host = "127.0.0.1:3009"
    sent, asked = ask(kind, host, origins=[origin])
    assert sent[0]["status"] == 403
    assert not asked
    assert not any(name.startswith(b"access-control") for name, _ in sent[0]["headers"])


@pytest.mark.parametrize("origins", [(), ("http://127.0.0.1:3009",), ("HTTPS://127.0.0.1:3009",)])
def test_a_page_of_its_own_passes(origins):
    assert ask("websocket", "127.0.0.1:3009", origins=origins) == ([], True)
