"""The `heapwatch` command."""

from __future__ import annotations

import sys
from collections.abc import Callable

if sys.platform == "win32":
    raise SystemExit("heapwatch runs on Linux and macOS; on Windows it runs in WSL 2")

_NO_BOUND = float("inf")


def above_zero(what: str = "a number", most: float = _NO_BOUND) -> Callable[[str], float]:
    """Return an argparse type for numbers above 0 and below `most`; errors call the number `what`."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value < most:
            from argparse import ArgumentTypeError  # a program under `heapwatch run` loads this package, too

            bound = f" and below {most:g}" if most < _NO_BOUND else ""
            raise ArgumentTypeError(f"{text!r} is not {what} above 0{bound}")
        return value

    return parse
