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


@contextmanager
def running_viewer(prometheus_url: str, port: int | None = None) -> Iterator[tuple[str, int]]:
    """A viewer of the generated dashboards, on a free port or this one: its address and process id."""
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
        _wait_until_ready(process, url)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(timeout=20)


def _wait_until_ready(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/healthz", trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError("the viewer did not start")


@pytest.fixture(scope="session")
def viewer(prometheus_url: str) -> Iterator[str]:
    """The address of a viewer of the history."""
    with running_viewer(prometheus_url) as (url, _):
        yield url
