"""Whose a connection is."""

import os
import socket
import subprocess
import sys

import pytest

from heapwatch.http.senders import sender

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
