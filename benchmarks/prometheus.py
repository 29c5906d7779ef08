"""A server of Prometheus' kind that is filled with history by remote write.

Just enough of the protocol (https://prometheus.io/docs/specs/prw/remote_write_spec/), protobuf and snappy by
hand; snappy's block format allows literals alone.
"""

from __future__ import annotations

import struct
import subprocess
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from tests.support.ports import free_port

START_SECONDS = 60
PROMETHEUS = (
    "prometheus",
    "--config.file={folder}/prometheus.yml",
    "--storage.tsdb.path={folder}/data",
    "--web.listen-address=127.0.0.1:{port}",
    "--web.enable-remote-write-receiver",
)
Sample = tuple[Mapping[str, str], float]


class Server(NamedTuple):
    """A running server: its process, its address, a client of it, and its folder."""

    process: subprocess.Popen[bytes]
    url: str
    client: httpx.Client
    folder: Path

    def log(self) -> str:
        """The end of what it said."""
        return (self.folder / "log").read_text()[-500:]


@contextmanager
def serve(command: tuple[str, ...], folder: Path, configuration: str) -> Iterator[Server]:
    """Run a server on a free port, with its data and configuration in `folder`, until the end.

    Raises:
        FileNotFoundError: the program is not on PATH.
        TimeoutError: it does not answer.

    """
    folder.mkdir(exist_ok=True)
    (folder / "prometheus.yml").write_text(configuration)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            [part.format(folder=folder, port=port) for part in command], stdout=log, stderr=log
        ) as process,
        httpx.Client(base_url=url, timeout=60, trust_env=False) as client,
    ):
        server = Server(process, url, client, folder)
        try:
            until = time.monotonic() + START_SECONDS
            while not _answers(client):
                if time.monotonic() > until or process.poll() is not None:
                    raise TimeoutError(f"{command[0]}: {server.log()}")
                time.sleep(0.1)
            yield server
        finally:
            process.terminate()


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/api/v1/query", params={"query": "1"}).is_success
    except httpx.TransportError:
        return False


def push(url: str, samples: Iterable[Sample], timestamp: float) -> None:
    """Send one sample of each series, all at `timestamp` (Unix seconds). Raises URLError when refused."""
    body = b"".join(_series(labels, value, int(timestamp * 1000)) for labels, value in samples)
    headers = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}
    with urllib.request.urlopen(urllib.request.Request(f"{url}/api/v1/write", _snappy(body), headers)):
        pass


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number: int, payload: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(payload)) + payload


def _series(labels: Mapping[str, str], value: float, milliseconds: int) -> bytes:
    named = b"".join(
        _field(1, _field(1, name.encode()) + _field(2, text.encode()))
        for name, text in sorted(labels.items())
    )
    sample = b"\x09" + struct.pack("<d", value) + b"\x10" + _varint(milliseconds)
    return _field(1, named + _field(2, sample))


def _snappy(data: bytes) -> bytes:
    out = bytearray(_varint(len(data)))
    for at in range(0, len(data), 65536):
        chunk = data[at : at + 65536]
        out += bytes([61 << 2]) + struct.pack("<H", len(chunk) - 1) + chunk
    return bytes(out)
