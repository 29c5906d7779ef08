"""Log lines: one an event, whatever an alert or a trainer put into it."""

from __future__ import annotations

import logging
import sys

from heapwatch.runtime.plain_text import plain

_LONGEST_LINE = 4000


class PlainFormatter(logging.Formatter):
    """Shows control characters as escapes; indents a traceback, so that no line of it looks like an event."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line of the record."""
        return plain(super().formatMessage(record), _LONGEST_LINE)

    def formatException(self, ei: object) -> str:
        """The lines of the traceback."""
        lines = super().formatException(ei).split("\n")  # type: ignore[arg-type]
        return "\n".join(f"  {plain(line, _LONGEST_LINE)}" for line in lines)


def log_to_stderr() -> None:
    """Log from level INFO on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PlainFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    logging.getLogger("httpx").setLevel(logging.WARNING)
