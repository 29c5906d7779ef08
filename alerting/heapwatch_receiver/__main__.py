"""`python -m heapwatch_receiver [--config FILE]`: serve until stopped."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from heapwatch.http.protocol import Connections, guarded
from heapwatch.runtime.plain_text import say
from heapwatch_receiver.app import create_app
from heapwatch_receiver.log import log_to_stderr
from heapwatch_receiver.settings import PREFIX, SettingsError, load, token
from heapwatch_receiver.store import StoreUnusable


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until stopped; exit status 2 and one line on stderr if the configuration is wrong."""
    parser = argparse.ArgumentParser(prog="python -m heapwatch_receiver", description=__doc__)
    parser.add_argument(
        "--config", type=Path, default=os.environ.get(PREFIX + "CONFIG"), help="YAML settings"
    )
    parsed = parser.parse_args(arguments)
    log_to_stderr()
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
            http=guarded(Connections(settings.request_timeout, settings.max_waiting_connections)),
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
