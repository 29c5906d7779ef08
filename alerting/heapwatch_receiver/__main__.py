"""`python -m heapwatch_receiver [--config FILE]`: serve until stopped."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from heapwatch.http.asgi import LIMITS
from heapwatch.text.terminal import plain, say
from heapwatch_receiver.app import create_app
from heapwatch_receiver.settings import SettingsError, load, token
from heapwatch_receiver.store import StoreUnusable

_LONGEST_LINE = 4000
# Alertmanager sends a request in milliseconds; the limits are for whoever sends slowly, or not at all.
REQUEST_SECONDS = 10.0


class PlainFormatter(logging.Formatter):
    """Escapes control characters, and indents tracebacks so that none of their lines looks like an event."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Format the message of a record."""
        return plain(super().formatMessage(record), _LONGEST_LINE)

    def formatException(self, ei: object) -> str:
        """Format a traceback."""
        lines = super().formatException(ei).split("\n")  # type: ignore[arg-type]
        return "\n".join(f"  {plain(line, _LONGEST_LINE)}" for line in lines)


def _log_to_stderr() -> None:
    """Log to stderr from level INFO."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PlainFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    logging.getLogger("httpx").setLevel(logging.WARNING)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until stopped; exit status 2 and one line on stderr if the configuration is wrong."""
    parser = argparse.ArgumentParser(prog="python -m heapwatch_receiver", description=__doc__)
    parser.add_argument(
        "--config", type=Path, default=os.environ.get("HEAPWATCH_RECEIVER_CONFIG"), help="YAML settings"
    )
    parsed = parser.parse_args(arguments)
    _log_to_stderr()
    try:
        settings = load(parsed.config)
        app = create_app(settings, token(settings))
    except (SettingsError, StoreUnusable) as error:
        say(f"heapwatch receiver: {error}", error=True)
        return 2
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host=settings.bind,
            port=settings.port,
            **LIMITS,
            ws="none",
            proxy_headers=False,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=65,
            timeout_graceful_shutdown=5,
        )
    )
    server.run()
    return 0 if server.started else 2


if __name__ == "__main__":
    sys.exit(main())
