"""A name that was made to point at this machine reads nothing of the viewer."""

import pytest

from tests.dashboards.viewer.conftest import running_viewer
from tests.support.http_client import CLIENT

pytestmark = pytest.mark.slow


def test_only_names_of_this_machine_are_answered():
    with running_viewer("http://127.0.0.1:9") as url:
        for host in ("evil.example", "evil.example:3009", "127.0.0.1.evil.example", ""):
            for path in ("/", "/metrics", "/d/heapwatch-fleet"):
                answer = CLIENT.get(url + path, headers={"Host": host}, timeout=30)
                assert answer.status_code in (400, 421), (host, path)
