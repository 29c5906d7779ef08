"""A real viewer on a real Prometheus with six hours of made-up history."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.support.ports import free_port
from tests.support.waiting import CLIENT


def start_viewer(prometheus_url: str, port: int | None = None) -> tuple[subprocess.Popen[bytes], str]:
    """A viewer of the generated dashboards, on a free port unless one is given; stop it with terminate()."""
    port = port or free_port()
    environment = os.environ | {
        "HEAPWATCH_DASHBOARDS_PORT": str(port),
        "HEAPWATCH_PROMETHEUS_URL": prometheus_url,
    }
    # NiceGUI looks at this one to find out that it is under its own test plugin.
    environment.pop("PYTEST_CURRENT_TEST", None)
    process = subprocess.Popen([sys.executable, "-m", "heapwatch_viewer"], env=environment)
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if CLIENT.get(f"{url}/healthz").status_code == 200:
                return process, url
        except httpx.TransportError:
            time.sleep(0.1)
    process.kill()
    raise RuntimeError("the viewer did not start")


@contextmanager
def running_viewer(prometheus_url: str, port: int | None = None) -> Iterator[str]:
    """The address of a viewer that is stopped at the end."""
    process, url = start_viewer(prometheus_url, port)
    try:
        yield url
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture(scope="session")
def viewer(prometheus_url: str) -> Iterator[str]:
    """The address of a viewer of the history."""
    with running_viewer(prometheus_url) as url:
        yield url
