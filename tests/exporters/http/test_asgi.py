"""By which names a service answers; the receiver and the viewer are tried with this middleware too."""

import asyncio

import pytest

from heapwatch.http.addresses import known_names
from heapwatch.http.asgi import KnownNames


def ask(kind, headers):
    """The first status that the middleware sends, or that the application was asked."""
    sent = []

    async def app(*_):
        sent.append({"status": "asked"})

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    middleware = KnownNames(app, known_names("127.0.0.1", {}))
    asyncio.run(middleware({"type": kind, "headers": headers}, receive, send))
    return sent[0]["status"]


HOST = (b"host", b"127.0.0.1:3009")


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_only_what_names_this_machine_and_comes_from_no_other_page_passes(kind):
    assert ask(kind, [HOST]) == ask(kind, [HOST, (b"origin", b"http://127.0.0.1:3009")]) == "asked"
    assert ask(kind, []) == ask(kind, [(b"host", b"evil.example")]) == ask(kind, [HOST, HOST]) == 421
    for origin in (b"http://evil.example", b"http://localhost:3009", b"null", b""):
        assert ask(kind, [HOST, (b"origin", origin)]) == 403
