"""Shows the library's few lines on stderr where a program has set up no logging of its own."""

from __future__ import annotations

import logging
import sys

_log = logging.getLogger("heapwatch")
# Lets INFO through, and differs from what a program would set.
_OUR_LEVEL = logging.INFO - 1


class _Notices(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to stderr as long as no other handler would."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers and sys.stderr is not None:
            self.setStream(sys.stderr)  # a notebook or a test may have replaced it since
            super().emit(record)


def _wanted(record: logging.LogRecord) -> bool:
    """The level of the program's root logger holds, unless the program has set one for this logger."""
    root = logging.getLogger()
    return _log.level != _OUR_LEVEL or not root.handlers or record.levelno >= root.level


def show_notices() -> None:
    """Make lines of level INFO visible; a level or handler that the program set stays."""
    if _log.level != logging.NOTSET or _log.handlers:
        return
    handler = _Notices()
    handler.setFormatter(logging.Formatter("heapwatch: %(message)s"))
    _log.addHandler(handler)
    _log.addFilter(_wanted)
    _log.setLevel(_OUR_LEVEL)
