"""Log lines: one line for each event, whatever text an alert or a trainer contains."""

from __future__ import annotations

import logging
import sys

from heapwatch.runtime.plain_text import plain

_LONGEST_LINE = 4000


class PlainFormatter(logging.Formatter):
    """Escapes control characters, and indents tracebacks so that none of their lines looks like an event."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Format the message of a record."""
        return plain(super().formatMessage(record), _LONGEST_LINE)

    def formatException(self, ei: object) -> str:
        """Format a traceback."""
        lines = super().formatException(ei).split("\n")  # type: ignore[arg-type]
        return "\n".join(f"  {plain(line, _LONGEST_LINE)}" for line in lines)


def log_to_stderr() -> None:
    """Log to stderr from level INFO."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PlainFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    logging.getLogger("httpx").setLevel(logging.WARNING)
