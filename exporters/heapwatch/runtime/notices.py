"""Shows the library's log lines on stderr if the program has not configured logging."""

from __future__ import annotations

import logging
import sys

_log = logging.getLogger("heapwatch")
# Lets INFO pass, and differs from any level that a program would set.
_OUR_LEVEL = logging.INFO - 1


class _Notices(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to stderr unless another handler takes the record."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers and sys.stderr is not None:
            self.setStream(sys.stderr)  # a notebook or a test may have replaced it since
            super().emit(record)


def _wanted(record: logging.LogRecord) -> bool:
    """Apply the level of the root logger, unless the program has set one for this logger."""
    root = logging.getLogger()
    return _log.level != _OUR_LEVEL or not root.handlers or record.levelno >= root.level


def show_notices() -> None:
    """Make lines of level INFO visible; levels and handlers of the program are not changed."""
    if _log.level != logging.NOTSET or _log.handlers:
        return
    handler = _Notices()
    handler.setFormatter(logging.Formatter("heapwatch: %(message)s"))
    _log.addHandler(handler)
    _log.addFilter(_wanted)
    _log.setLevel(_OUR_LEVEL)
