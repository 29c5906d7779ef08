"""`heapwatch attach PID` and `detach PID`: watch a running process, from inside if that is possible."""

from __future__ import annotations

import argparse
import os
import signal
from typing import Any

from heapwatch.attach import Attachment, CannotAttach, process_of
from heapwatch.cli.followed import DIED, DIED_MEANS, Ended, Followed, answer_of
from heapwatch.entering.entered_process import CannotEnter, EnteredProcess
from heapwatch.errors import reason
from heapwatch.http.server import DEFAULT_PORT
from heapwatch.runtime import environment
from heapwatch.runtime.plain_text import say

_EPILOG = f"""
Heapwatch is started inside the process, which needs no installed Heapwatch. The process serves what
`heapwatch run` serves, and joins the stack, until it ends or `heapwatch detach PID` removes everything.
attach returns at once. If the process cannot be entered, attach says why. Then, and with --outside, attach
itself serves what can be read from outside, until the process ends.

exit codes:
  0   Heapwatch runs in the process, the process ended, or attach was stopped
  1   there is no such process, it belongs to another user, or the port is taken
  {DIED}   {DIED_MEANS}
  64  the command line is wrong
"""

_LEAVING = f"""
It also ends a `heapwatch explain PID` that is still running. No thread and no port stays. Imported modules
stay until the process ends.

exit codes:
  0   Heapwatch has left the process, or the process ended
  1   it was never attached, there is no such process, or it cannot be entered
  {DIED}   {DIED_MEANS}
  64  the command line is wrong
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "attach",
        help="watch a running process",
        description="Watch a running process without changing its program.",
        epilog=_EPILOG,
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
    leaving = commands.add_parser(
        "detach",
        help="end what `attach` started",
        description="Take Heapwatch out of a process that `heapwatch attach` has put it into.",
        epilog=_LEAVING,
    )
    leaving.add_argument("pid", type=int, metavar="PID", help="the process")
    leaving.set_defaults(run=leave)


def run(arguments: argparse.Namespace) -> int:
    """Start an exporter in the process, or serve from outside until it ends or a signal arrives."""
    try:
        if not arguments.outside:
            try:
                return _start_inside(arguments)
            except CannotEnter as error:
                say(f"heapwatch: cannot find what grows in the process: {error}", error=True)
        port = environment.trainer_port() if arguments.port is None else arguments.port
        attachment = Attachment(
            arguments.pid,
            name=arguments.name,
            host=arguments.host,
            port=DEFAULT_PORT if port is None else port,
            port_search=port is None,
        )
        attachment.start()
    except Ended as ended:
        say(f"heapwatch: {ended}", error=True)
        return ended.exit_code
    except (CannotAttach, OSError, ValueError) as error:
        say(f"heapwatch: {reason(error)}", error=True)
        return 1
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        say(f"process {arguments.pid} ({attachment.name}) at {attachment.server.url}metrics")
        attachment.wait_until_ended()
        say(f"process {arguments.pid} has ended")
    except KeyboardInterrupt:
        pass
    finally:
        attachment.stop()
    return 0


def leave(arguments: argparse.Namespace) -> int:
    """End what was attached to the process."""
    try:
        process = process_of(arguments.pid)
        with EnteredProcess(arguments.pid) as entered, Followed(process) as followed:
            answer_of(entered, followed, "leave")
    except Ended as ended:
        say(f"heapwatch: {ended}", error=True)
        return ended.exit_code
    except (CannotAttach, CannotEnter) as error:
        say(f"heapwatch: {error}", error=True)
        return 1
    say(f"Heapwatch has left process {arguments.pid}")
    return 0


def _start_inside(arguments: argparse.Namespace) -> int:
    process = process_of(arguments.pid)
    with EnteredProcess(arguments.pid) as entered, Followed(process, arguments.name or "") as followed:
        name = followed.name
        answer = answer_of(entered, followed, "serve", name=name, host=arguments.host, port=arguments.port)
    begins = "runs Heapwatch already," if answer.get("already") else f"({name})"
    url = answer.get("url")
    say(f"process {arguments.pid} {begins} at {url}metrics; `heapwatch explain {url}` shows what grows")
    return 0
