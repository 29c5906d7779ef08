"""Waits for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import httpx

T = TypeVar("T")
# `httpx.get` makes a client for each request, and reads all certificates for it: 40 ms of computing.
CLIENT = httpx.Client(timeout=10, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))


def wait_for(condition: Callable[[], T], what: str = "it comes", seconds: float = 60) -> T:
    """The first true value of the condition; asks every 20 ms."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if value := condition():
                return value
            reason = None
        except (httpx.TransportError, OSError, KeyError, IndexError, TypeError) as error:
            reason = error  # not there yet
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}") from reason
        time.sleep(0.02)
