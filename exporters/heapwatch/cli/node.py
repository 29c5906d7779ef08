"""`heapwatch node`: the exporter of this machine."""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import threading
from typing import Any

from heapwatch.errors import UsageError, reason
from heapwatch.text.terminal import say, show_notices

_LONGEST_WAIT_SECONDS = 3600.0
_EPILOG = """
All processes of this user are read every ten seconds and judged in groups of equals. Where a group leaks,
one of its processes is entered, which names what leaks. The exporter joins the stack of this user.

exit codes:
  0   it was ended by Ctrl-C or SIGTERM
  1   it cannot listen there
  64  the command line is wrong
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    from heapwatch.machine.node import DEFAULT_PORT

    parser = commands.add_parser(
        "node",
        help="watch all processes of this machine, for days",
        description="Watch all processes of this machine, and export their groups.",
        epilog=_EPILOG,
    )
    parser.add_argument("--name", default=socket.gethostname(), help="its name in the stack (%(default)s)")
    parser.add_argument(
        "--host",
        default=os.environ.get("HEAPWATCH_BIND") or "127.0.0.1",
        help="address to listen on (%(default)s)",
    )
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="0: any free port (%(default)s)")
    parser.add_argument("--all-users", action="store_true", help="look at processes of other users, too")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Watch until a signal ends it."""
    from heapwatch.machine.node import Node

    if not os.path.isdir("/proc/self"):
        raise UsageError("a machine is watched on Linux alone")
    show_notices()
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    node = Node(re.sub(r"[^\w.-]", "_", arguments.name)[:64] or "machine", everyone=arguments.all_users)
    try:
        address = node.start(arguments.host, arguments.port)
    except (OSError, ValueError) as error:
        say(f"heapwatch: {reason(error) if isinstance(error, OSError) else error}", error=True)
        return 1
    say(f"this machine is watched at http://{address}/", error=True)
    while not ended.wait(_LONGEST_WAIT_SECONDS):
        pass
    node.stop()
    return 0
