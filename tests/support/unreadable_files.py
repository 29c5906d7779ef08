"""What may lie under the name of a file of ours: each must be refused in one line, at once."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

GIGABYTE = 10**9
ANOTHER_USER = 61234


def _gigabyte(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(GIGABYTE)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(path.parent, os.O_RDONLY)
        try:  # the kernel allows 107 bytes
            listener.bind(f"/proc/self/fd/{here}/{path.name}")
        finally:
            os.close(here)


UNREADABLE: dict[str, Callable[[Path], Any]] = {
    "a pipe": lambda path: os.mkfifo(path, 0o600),
    "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to(path.with_name("nothing")),
    "a gigabyte": _gigabyte,
    "a folder": lambda path: path.mkdir(),
    "a socket": _socket,
    "no UTF-8": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "deep JSON": lambda path: path.write_text("[" * 60_000),
    "deep JSON that ends": lambda path: path.write_text("[" * 30_000 + "]" * 30_000),
    "no JSON": lambda path: path.write_text("{"),
    "other JSON": lambda path: path.write_text('{"a": [1e999, null]}'),
    "a number without end": lambda path: path.write_text("1" * 60_000),
}
OF_ANOTHER_USER = "another user's"


def others_file(path: Path, document: object) -> None:
    """A file of another user that anyone may read; only root can make one."""
    path.write_text(json.dumps(document))
    path.chmod(0o644)
    os.chown(path, ANOTHER_USER, ANOTHER_USER)
