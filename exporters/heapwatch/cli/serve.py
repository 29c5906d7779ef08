"""`heapwatch receiver` and `heapwatch viewer`: one service of the stack, in the foreground."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from heapwatch.runtime.plain_text import say


def add_parser(commands: Any) -> None:
    """Add the subcommands."""
    receiver = commands.add_parser(
        "receiver",
        help="run only the receiver",
        description="Receive Alertmanager's webhooks and request cleanups. Settings: HEAPWATCH_RECEIVER_*.",
    )
    receiver.add_argument("--config", type=Path, metavar="FILE", help="YAML settings")
    receiver.set_defaults(run=serve_receiver, extra="receiver")
    viewer = commands.add_parser(
        "viewer",
        help="run only the built-in viewer of the dashboards",
        description="Serve the dashboards. Settings: HEAPWATCH_BIND, HEAPWATCH_DASHBOARDS_PORT (3009),"
        " HEAPWATCH_PROMETHEUS_URL (http://127.0.0.1:9090), HEAPWATCH_DASHBOARDS_DIR (the package's).",
    )
    viewer.set_defaults(run=serve_viewer, extra="viewer")


def serve_receiver(arguments: argparse.Namespace) -> int:
    """Serve until stopped; 2 when it cannot serve as configured."""
    from heapwatch_receiver.__main__ import main

    return main(["--config", str(arguments.config)] if arguments.config else [])


def serve_viewer(_arguments: argparse.Namespace) -> int:
    """Serve until stopped; 1 when it cannot."""
    from heapwatch_viewer.app import serve
    from heapwatch_viewer.settings import Settings

    try:
        serve(Settings.from_environment())
    except ValueError as problem:
        say(f"heapwatch viewer: {problem}", error=True)
        return 1
    return 0
