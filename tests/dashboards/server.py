"""A Prometheus on a free loopback port, for as long as a test needs it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from tests.support.http_client import CLIENT
from tests.support.ports import free_port
from tests.support.programs import find
from tests.support.waiting import wait_for

END_SECONDS = 30
SCRAPE_NOTHING = "global: {scrape_interval: 15s}\n"


@contextmanager
def prometheus(data: Path, configuration: str = SCRAPE_NOTHING, port: int | None = None) -> Iterator[str]:
    """A Prometheus of the data directory with this configuration; yields the URL.

    Skips the test when it is not on PATH. Raises AssertionError when it does not become ready.
    """
    binary = find("prometheus")
    data.mkdir(parents=True, exist_ok=True)
    file, address = data / "prometheus.yml", f"127.0.0.1:{port or free_port()}"
    file.write_text(configuration)
    options = [f"--config.file={file}", f"--storage.tsdb.path={data}", "--storage.tsdb.retention.time=10y"]
    with (data / "prometheus.log").open("w") as log:
        command = [binary, *options, f"--web.listen-address={address}"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_for(lambda: answers(f"http://{address}/-/ready"), "Prometheus")
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(timeout=END_SECONDS)


def answers(url: str) -> bool:
    """Whether what is asked there is well."""
    with suppress(httpx.TransportError):
        return CLIENT.get(url).status_code == 200
    return False
