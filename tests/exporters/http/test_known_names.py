"""By which names a service answers; the receiver and the viewer are tried with this middleware too."""

import asyncio

import pytest

from heapwatch.http.known_names import KnownNames, is_known, known_names


@pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:3009", "[::1]:3009", "LOCALHOST:1"])
def test_loopback_is_known_everywhere(bind, host):
    assert is_known(host, known_names(bind, {}))


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.nip.io", "", "*", "[evil]:1", "10.0.0.1 evil"]
)
@pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0", "::"])
def test_other_names_are_known_nowhere(bind, host):
    assert not is_known(host, known_names(bind, {"HEAPWATCH_ALLOWED_HOSTS": "*, proxy.example"}))


def test_addresses_and_given_names_are_known_where_it_listens_on_more_than_loopback():
    given = {"HEAPWATCH_ALLOWED_HOSTS": "proxy.example:443, other"}
    for host in ("10.1.2.3:3009", "[2001:db8::1]", "proxy.example", "other:3009"):
        assert is_known(host, known_names("0.0.0.0", given))
    assert is_known("proxy.example", known_names("127.0.0.1", given))
    assert not is_known("10.1.2.3", known_names("127.0.0.1", given))


def ask(kind, *hosts, origins=(), **options):
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
    middleware = KnownNames(app, known_names("127.0.0.1", {}), **options)
    asyncio.run(middleware({"type": kind, "headers": headers}, receive, send))
    return sent, bool(asked)


@pytest.mark.parametrize("kind", ["http", "websocket", "lifespan"])
def test_what_names_this_machine_passes(kind):
    assert ask(kind, "127.0.0.1:3009") == ([], True)


@pytest.mark.parametrize("hosts", [("evil.example",), (), ("127.0.0.1", "evil.example")])
def test_a_request_of_another_name_is_answered_421_and_a_socket_closed(hosts):
    sent, asked = ask("http", *hosts)
    assert sent[0]["status"] == 421
    assert not asked
    assert ask("websocket", *hosts) == ([{"type": "websocket.close", "code": 1008}], False)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:8888", "http://localhost:3009", "null", ""]
)
def test_a_page_of_another_origin_is_refused_where_that_is_asked_for(origin):
    host = "127.0.0.1:3009"
    sent, asked = ask("http", host, origins=[origin], same_origin=True)
    assert sent[0]["status"] == 403
    assert not asked
    assert not any(name.startswith(b"access-control") for name, _ in sent[0]["headers"])
    closed = [{"type": "websocket.close", "code": 1008}]
    assert ask("websocket", host, origins=[origin], same_origin=True) == (closed, False)
    assert ask("http", host, origins=[origin]) == ([], True)


@pytest.mark.parametrize("origins", [(), ("http://127.0.0.1:3009",), ("HTTPS://127.0.0.1:3009",)])
def test_a_page_of_its_own_passes(origins):
    assert ask("websocket", "127.0.0.1:3009", origins=origins, same_origin=True) == ([], True)
