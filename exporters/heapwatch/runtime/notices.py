"""Shows the library's few lines on stderr where a program has set up no logging of its own."""

from __future__ import annotations

import logging
import sys

_log = logging.getLogger("heapwatch")


class _Notices(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to stderr as long as nobody else would."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers and sys.stderr is not None:
            self.setStream(sys.stderr)  # a notebook or a test may have replaced it since
            super().emit(record)


def _wanted(record: logging.LogRecord) -> bool:
    """A program's own level holds, although the lines of level INFO are let through where it has none."""
    root = logging.getLogger()
    return not root.handlers or record.levelno >= root.level


def show_notices() -> None:
    """Make lines of level INFO visible; a level or handler that somebody gave the logger stays as it is."""
    if _log.level != logging.NOTSET or _log.handlers:
        return
    handler = _Notices()
    handler.setFormatter(logging.Formatter("heapwatch: %(message)s"))
    _log.addHandler(handler)
    _log.addFilter(_wanted)
    _log.setLevel(logging.INFO)
