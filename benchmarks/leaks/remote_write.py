"""Just enough of Prometheus' remote write to fill an empty server with history: protobuf and snappy by hand.

Format: https://prometheus.io/docs/specs/prw/remote_write_spec/ ; snappy's block format allows literals alone.
"""

from __future__ import annotations

import struct
import urllib.request
from collections.abc import Iterable, Mapping

Sample = tuple[Mapping[str, str], float]


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


def push(url: str, samples: Iterable[Sample], timestamp: float) -> None:
    """Send one sample of each series, all at `timestamp` (Unix seconds). Raises URLError when refused."""
    body = b"".join(_series(labels, value, int(timestamp * 1000)) for labels, value in samples)
    headers = {"Content-Encoding": "snappy", "Content-Type": "application/x-protobuf"}
    with urllib.request.urlopen(urllib.request.Request(f"{url}/api/v1/write", _snappy(body), headers)):
        pass
