"""Servers of the stack on a free loopback port, for as long as a test needs them."""

import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.ports import free_port
from tests.support.programs import find

START_SECONDS = 30
SCRAPE_NOTHING = "global: {scrape_interval: 15s}\n"


@contextmanager
def prometheus(data: Path, configuration: str = SCRAPE_NOTHING, port: int | None = None) -> Iterator[str]:
    """A Prometheus of the data directory with this configuration; yields the URL. Raises as `serving`."""
    data.mkdir(parents=True, exist_ok=True)
    file = data / "prometheus.yml"
    file.write_text(configuration)
    options = [f"--config.file={file}", f"--storage.tsdb.path={data}", "--storage.tsdb.retention.time=10y"]
    with serving("prometheus", options, data / "prometheus.log", port) as url:
        yield url


@contextmanager
def serving(program: str, options: list[str], log: Path, port: int | None = None) -> Iterator[str]:
    """The program on a free port unless one is given; yields the URL.

    Raises RuntimeError when it does not become ready.
    """
    binary = find(program)
    address = f"127.0.0.1:{port or free_port()}"
    with log.open("w") as stream:
        command = [binary, *options, f"--web.listen-address={address}"]
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT)
    try:
        _wait_until_ready(f"http://{address}", process, log)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(timeout=START_SECONDS)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=1):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise RuntimeError(f"{process.args} did not become ready:\n{log.read_text()[-2000:]}")
