"""Waits for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(condition: Callable[[], T], what: str = "it comes", seconds: float = 60) -> T:
    """The first true value of the condition; asks every 20 ms."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if value := condition():
                return value
            reason = None
        except Exception as error:
            reason = error  # not there yet
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}") from reason
        time.sleep(0.02)
