"""The names of this machine; which user listens on its ports, and which sends a request."""

import os
import socket
import subprocess
import sys

import pytest

from heapwatch.http.addresses import ForeignListener, check_owner, is_known, known_names, sender

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LOOPBACK, EVERYWHERE, OTHER = "0100007F", "00000000", "0200007F"
LOOPBACK_6, EVERYWHERE_6, MAPPED = f"{'0' * 24}01000000", "0" * 32, "0000000000000000FFFF00000100007F"
ME = 1000


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


@pytest.mark.parametrize("given", ["2001:db8::5", "[2001:db8::5]", "[2001:DB8::5]:9095"])
def test_an_address_of_ipv6_may_be_given(given):
    """As of a proxy; up to its first colon it would be no address."""
    assert is_known("[2001:db8::5]:9095", known_names("127.0.0.1", {"HEAPWATCH_ALLOWED_HOSTS": given}))


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """The kernel's tables of a machine on which user 1000 asks, with (address, state, owner) on port 7777."""
    monkeypatch.setattr(os, "geteuid", lambda: ME)

    def written(*rows):
        for table, length in (("tcp", 8), ("tcp6", 32)):
            lines = [
                f"   0: {address}:1E61 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  {owner}"
                "        0 12345 1 0000000000000000 100 0 0 10 0\n"
                for address, state, owner in rows
                if len(address) == length
            ]
            (tmp_path / table).write_text(HEAD + "".join(lines))
        return tmp_path

    return written


@pytest.mark.parametrize("owner", [ME, 0])
@pytest.mark.parametrize("address", [LOOPBACK, EVERYWHERE, EVERYWHERE_6, MAPPED])
def test_a_listener_of_the_same_user_or_of_root_is_asked(tables, address, owner):
    check_owner("http://127.0.0.1:7777/force_cleanup", tables=tables((address, "0A", owner)))


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://127.0.0.1:7777/", LOOPBACK),
        ("http://127.0.0.1:7777/", EVERYWHERE),
        ("http://127.0.0.1:7777/", EVERYWHERE_6),
        ("http://127.0.0.1:7777/", MAPPED),
        ("http://localhost:7777/", LOOPBACK_6),
        ("http://[::1]:7777/", LOOPBACK_6),
        (f"http://{socket.gethostname()}:7777/", EVERYWHERE),
    ],
)
def test_a_listener_of_another_user_is_not_asked(tables, url, address):
    with pytest.raises(ForeignListener, match="port 7777 of this machine user 1001 listens"):
        check_owner(url, tables=tables((address, "0A", 1001)))


@pytest.mark.parametrize(
    ("url", "rows"),
    [
        ("http://127.0.0.1:7777/", [(LOOPBACK, "01", 1001)]),  # a connection, no listener
        ("http://127.0.0.1:7777/", [(OTHER, "0A", 1001)]),
        ("http://127.0.0.1:7777/", [(LOOPBACK, "0A", ME), (EVERYWHERE_6, "0A", 1001)]),
        ("http://127.0.0.1:7778/", [(LOOPBACK, "0A", 1001)]),
        ("http://192.0.2.1:7777/", [(EVERYWHERE, "0A", 1001)]),  # another machine
        ("http://trainer.example:7777/", [(EVERYWHERE, "0A", 1001)]),
        ("http://127.0.0.1:7777/", []),
    ],
)
def test_other_listeners_do_not_matter(tables, url, rows):
    check_owner(url, tables=tables(*rows))


def test_a_system_without_this_information_is_no_reason_to_refuse(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: ME)
    check_owner("http://127.0.0.1:7777/", tables=tmp_path / "none")


def test_the_real_tables_are_read(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        check_owner(url)
        owner = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: 54321)
        if owner == 0:  # root may listen for anybody
            check_owner(url)
        else:
            with pytest.raises(ForeignListener, match=f"user {owner} listens"):
                check_owner(url)


CALL = """
import encodings.idna, os, socket, sys
os.setuid(int(sys.argv[3]))
socket.create_connection((sys.argv[1], int(sys.argv[2]))).recv(1)
"""


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("user", [os.geteuid(), 61234])
def test_a_connection_of_this_machine_has_its_users_id(host: str, user: int) -> None:
    if user != os.geteuid() and os.geteuid() != 0:
        pytest.skip("only root starts processes of other users")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        command = [sys.executable, "-c", CALL, host, str(server.getsockname()[1]), str(user)]
        with subprocess.Popen(command):
            server.settimeout(20)
            connection, peer = server.accept()
            with connection:
                assert sender(peer, connection.getsockname()) == (host, user)


@pytest.mark.parametrize(
    ("peer", "local", "expected"),
    [
        (("10.0.0.5", 1), ("10.0.0.9", 2), ("10.0.0.5", None)),
        (("::ffff:10.0.0.5", 1), ("10.0.0.9", 2), ("10.0.0.5", None)),
        (("127.0.0.1", 1), ("127.0.0.1", 2), ("127.0.0.1", None)),  # the connection is gone
        (("testclient", 1), ("testserver", 2), ("testclient", None)),
        ("", "/run/socket", ("", None)),
        (None, None, ("", None)),
    ],
)
def test_others_have_an_address(peer: object, local: object, expected: object) -> None:
    assert sender(peer, local) == expected
