"""`heapwatch attach PID` and `detach PID`: watch a running process from inside."""

from __future__ import annotations

import argparse
import os
from typing import Any

from heapwatch.cli.followed import DIED, DIED_MEANS, Ended, Followed
from heapwatch.entering.entered_process import CannotEnter, EnteredProcess, process_of
from heapwatch.http.server import DEFAULT_PORT
from heapwatch.text.terminal import say

_EPILOG = f"""
Heapwatch is started inside the process, which needs no installed Heapwatch. The process serves what
`heapwatch run` serves, and joins the stack, until it ends or `heapwatch detach PID` removes everything.
attach returns at once. If the process cannot be entered, attach says why.

exit codes:
  0   Heapwatch runs in the process, or the process ended
  1   there is no such process, or it cannot be entered
  {DIED}   {DIED_MEANS}
  64  the command line is wrong
"""

_DETACH_EPILOG = f"""
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
    parser.set_defaults(run=run)
    detach = commands.add_parser(
        "detach",
        help="end what `attach` started",
        description="Take Heapwatch out of a process that `heapwatch attach` has put it into.",
        epilog=_DETACH_EPILOG,
    )
    detach.add_argument("pid", type=int, metavar="PID", help="the process")
    detach.set_defaults(run=leave)


def run(arguments: argparse.Namespace) -> int:
    """Start an exporter in the process."""
    details = {"host": arguments.host, "port": arguments.port}
    code, name, answer = _ask(arguments.pid, "serve", arguments.name or "", **details)
    if answer is not None:
        state = "runs Heapwatch already," if answer.get("already") else f"({name})"
        url = answer.get("url")
        say(f"process {arguments.pid} {state} at {url}metrics; `heapwatch explain {url}` shows what grows")
    return code


def leave(arguments: argparse.Namespace) -> int:
    """End what was attached to the process."""
    code, _, answer = _ask(arguments.pid, "leave")
    if answer is not None:
        say(f"Heapwatch has left process {arguments.pid}")
    return code


def _ask(pid: int, action: str, name: str = "", **details: Any) -> tuple[int, str, dict[str, Any] | None]:
    """Return the exit code, the name of the process and its answer; without an answer, print the reason."""
    try:
        process = process_of(pid)
        with EnteredProcess(pid) as entered, Followed(process, name) as followed:
            try:
                answer = entered.ask(action, name=followed.name, **details)
            except CannotEnter:
                if end := followed.end("while it was entered"):
                    raise end from None
                raise
            if end := followed.end("right after it was entered"):
                raise end
            return 0, followed.name, answer
    except (Ended, CannotEnter) as error:
        say(f"heapwatch: {error}", error=True)
        return error.exit_code if isinstance(error, Ended) else 1, name, None
