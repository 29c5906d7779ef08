"""`heapwatch attach PID`: serve the metrics of a process that cannot be changed, until it ends."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from heapwatch.attach import Attachment, CannotAttach, wait_until_ended
from heapwatch.cli.interrupt import interrupt_on_termination
from heapwatch.http.server import DEFAULT_PORT
from heapwatch.runtime.plain_text import plain

_EPILOG = """
exit codes:
  0   the process ended, or attach was stopped
  1   there is no such process, it belongs to another user, or the port is taken
  64  the command line is wrong
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "attach",
        help="serve the metrics of a process that cannot be changed",
        description="Serve memory, CPU, files and GPU memory of a process and its children, until it ends.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("pid", type=int, metavar="PID")
    parser.add_argument("--name", help="name of the trainer (default: the name of its script)")
    parser.add_argument(
        "--host", default=os.environ.get("HEAPWATCH_BIND") or "127.0.0.1", help="(%(default)s)"
    )
    parser.add_argument(
        "--port",
        type=int,
        help=f"0 for any free one (default: HEAPWATCH_TRAINER_PORT, else a free one from {DEFAULT_PORT} on)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until the process ends or a signal comes."""
    port, search = arguments.port, False
    if port is None:
        text = os.environ.get("HEAPWATCH_TRAINER_PORT", "")
        port, search = (int(text), False) if text.isdigit() else (DEFAULT_PORT, True)
    try:
        attachment = Attachment(
            arguments.pid, name=arguments.name, host=arguments.host, port=port, port_search=search
        )
        attachment.start()
    except (CannotAttach, OSError, ValueError) as error:
        print(plain(f"heapwatch: {error}"), file=sys.stderr)
        return 1
    interrupt_on_termination()
    try:
        where = f"{attachment.server.url}metrics"
        print(plain(f"process {arguments.pid} ({attachment.name}) at {where}"), flush=True)
        wait_until_ended(attachment)
        print(f"process {arguments.pid} has ended")
    except KeyboardInterrupt:
        pass
    finally:
        attachment.stop()
    return 0
