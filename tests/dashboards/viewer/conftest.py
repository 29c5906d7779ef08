"""A real viewer on a real Prometheus with six hours of made-up history."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.dashboards.server import answers
from tests.support.ports import free_port
from tests.support.waiting import wait_for


@contextmanager
def running_viewer(prometheus_url: str, port: int | None = None) -> Iterator[str]:
    """The address of a viewer of the generated dashboards, on a free port unless one is given."""
    port = port or free_port()
    environment = os.environ | {
        "HEAPWATCH_DASHBOARDS_PORT": str(port),
        "HEAPWATCH_PROMETHEUS_URL": prometheus_url,
    }
    # NiceGUI looks at this one to find out that it is under its own test plugin.
    environment.pop("PYTEST_CURRENT_TEST", None)
    process = subprocess.Popen([sys.executable, "-m", "heapwatch_viewer"], env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: answers(f"{url}/healthz"), "the viewer")
        yield url
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture(scope="session")
def viewer(prometheus_url: str) -> Iterator[str]:
    """The address of a viewer of the history."""
    with running_viewer(prometheus_url) as url:
        yield url
