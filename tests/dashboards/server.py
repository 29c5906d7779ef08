"""A real Prometheus on a free loopback port, for as long as a test needs it."""

import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.ports import free_port

START_SECONDS = 30
SCRAPE_NOTHING = "global: {scrape_interval: 15s}\n"


@contextmanager
def prometheus(data: Path, configuration: str = SCRAPE_NOTHING, port: int | None = None) -> Iterator[str]:
    """Serve the data directory with this configuration, on a free port unless one is given; yields the URL.

    Raises FileNotFoundError when Prometheus is not on PATH, RuntimeError when it does not become ready.
    """
    binary = shutil.which("prometheus")
    if binary is None:
        raise FileNotFoundError("prometheus is not on PATH")
    data.mkdir(parents=True, exist_ok=True)
    file = data / "prometheus.yml"
    file.write_text(configuration)
    port = port or free_port()
    log = data / "prometheus.log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [
                binary,
                f"--config.file={file}",
                f"--storage.tsdb.path={data}",
                "--storage.tsdb.retention.time=10y",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(url, process, log)
        yield url
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
    raise RuntimeError(f"Prometheus did not become ready:\n{log.read_text()[-2000:]}")
