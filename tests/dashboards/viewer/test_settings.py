import os
import socket

import pytest

from heapwatch_viewer.settings import check_free


def test_the_owner_of_a_taken_port_is_named():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(ValueError, match=rf"port {port} is taken by pid {os.getpid()}.*DASHBOARDS_PORT"):
            check_free("127.0.0.1", port)
    check_free("127.0.0.1", port)


def test_an_address_that_is_not_here_is_named():
    with pytest.raises(ValueError, match=r"192\.0\.2\.1"):
        check_free("192.0.2.1", 3009)
