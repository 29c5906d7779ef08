"""`heapwatch attach PID`: watch a running process, from inside if Python allows it, else from outside."""

from __future__ import annotations

import argparse
import os
from typing import Any

from heapwatch.attach import Attachment, CannotAttach, name_of, process_of, wait_until_ended
from heapwatch.cli.interrupt import interrupt_on_termination
from heapwatch.errors import reason
from heapwatch.http.server import DEFAULT_PORT
from heapwatch.injection import CannotInject, inject
from heapwatch.lifecycle import port_from_environment
from heapwatch.runtime.plain_text import say

_EPILOG = """
On Python 3.14 and newer, here and in the process, Heapwatch is started inside the process: it serves what
`heapwatch run` serves until the process ends, and attach returns at once. Otherwise, and with --outside,
attach serves what can be read from outside until the process ends.

exit codes:
  0   Heapwatch runs in the process, the process ended, or attach was stopped
  1   there is no such process, it belongs to another user, or the port is taken
  64  the command line is wrong
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "attach",
        help="watch a running process",
        description="Watch a running process without changing its program.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("pid", type=int, metavar="PID", help="the process")
    parser.add_argument("--name", help="name of the trainer (default: the name of its script)")
    parser.add_argument(
        "--host",
        default=os.environ.get("HEAPWATCH_BIND") or "127.0.0.1",
        help="address to listen on (%(default)s)",
    )
    parser.add_argument(
        "--port",
        type=int,
        help=f"port, 0 for any free one (HEAPWATCH_TRAINER_PORT, else a free one from {DEFAULT_PORT} on)",
    )
    parser.add_argument("--outside", action="store_true", help="start nothing inside the process")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Start an exporter in the process, or serve beside it until it ends or a signal comes."""
    if not arguments.outside:
        try:
            return _start_inside(arguments)
        except CannotAttach as error:
            say(f"heapwatch: {error}", error=True)
            return 1
        except CannotInject as error:
            say(f"heapwatch: cannot find what grows in the process: {error}", error=True)
    try:
        port = port_from_environment() if arguments.port is None else arguments.port
        attachment = Attachment(
            arguments.pid,
            name=arguments.name,
            host=arguments.host,
            port=DEFAULT_PORT if port is None else port,
            port_search=port is None,
        )
        attachment.start()
    except CannotAttach as error:
        say(f"heapwatch: {error}", error=True)
        return 1
    except (OSError, ValueError) as error:
        say(f"heapwatch: {reason(error)}", error=True)
        return 1
    interrupt_on_termination()
    try:
        where = f"{attachment.server.url}metrics"
        say(f"process {arguments.pid} ({attachment.name}) at {where}")
        wait_until_ended(attachment)
        say(f"process {arguments.pid} has ended")
    except KeyboardInterrupt:
        pass
    finally:
        attachment.stop()
    return 0


def _start_inside(arguments: argparse.Namespace) -> int:
    name = arguments.name or name_of(process_of(arguments.pid))
    url = inject(arguments.pid, name, host=arguments.host, port=arguments.port)
    say(f"process {arguments.pid} ({name}) at {url}metrics; `heapwatch explain {url}` shows what grows")
    return 0
