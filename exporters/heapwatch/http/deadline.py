"""Reads from a socket until a deadline; the timeout of a socket restarts with each byte."""

from __future__ import annotations

import io
import socket
import time
from typing import Any


class UntilDeadline(io.RawIOBase):
    """The bytes of a connection; after so many seconds in all, reading raises TimeoutError."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self._stream = connection.makefile("rb", buffering=0)
        self._deadline = time.monotonic() + seconds

    def readable(self) -> bool:
        """Whether it can be read, as `io.BufferedReader` asks."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there, at least a byte; 0 at the end."""
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        self._connection.settimeout(seconds)
        return self._stream.readinto(buffer) or 0

    def close(self) -> None:
        """Release the connection."""
        self._stream.close()
        super().close()
