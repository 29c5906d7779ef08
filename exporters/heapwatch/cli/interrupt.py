"""SIGTERM ends a command as Ctrl-C does."""

from __future__ import annotations

import signal
from typing import NoReturn


def interrupt_on_termination() -> None:
    """Make SIGTERM raise KeyboardInterrupt: an event set by a handler could deadlock with its own wait."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(*_arguments: object) -> NoReturn:
    raise KeyboardInterrupt
