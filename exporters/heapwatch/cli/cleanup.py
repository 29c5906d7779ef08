"""`heapwatch cleanup`: has a trainer clean up now, with the token of this user."""

from __future__ import annotations

import argparse
from typing import Any

from heapwatch.cli.named import address_of_name, is_address
from heapwatch.cli.reporter import cleanup_lines
from heapwatch.errors import Unreachable, UsageError
from heapwatch.http.client import base_url, post_json
from heapwatch.http.guards import find_token
from heapwatch.registration import choose, token_of
from heapwatch.runtime.cleanup import ACTIONS
from heapwatch.runtime.plain_text import say

_WAIT_SECONDS = 30.0
_EPILOG = """
The token is HEAPWATCH_TOKEN, else the content of HEAPWATCH_TOKEN_FILE, else that of the running stack.

exit codes:
  0   cleaned up
  3   no answer, or the trainer has not reached a safe point
  64  the command line is wrong, or there is no token

examples:
  heapwatch cleanup walker
  heapwatch cleanup 127.0.0.1:7777 --action regular
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "cleanup",
        help="have a trainer clean up now",
        description="Have a trainer clean up at its next safe point, and show what that freed.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("trainer", metavar="NAME|URL", help="a registered trainer, or its address")
    parser.add_argument("--action", choices=ACTIONS, default="emergency", help="what to do (%(default)s)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Ask for a cleanup and print what it did.

    Raises:
        UsageError: there is no token, or the address is none.

    """
    token = find_token_of_user()
    document = {
        "action": arguments.action,
        "reason": "heapwatch cleanup",
        "timeout_seconds": _WAIT_SECONDS,
    }
    try:
        where = arguments.trainer
        url = base_url(where if is_address(where) else address_of_name(where))
        _, answer = post_json(f"{url}/force_cleanup", document, token, _WAIT_SECONDS + 5)
    except Unreachable as error:
        say(f"heapwatch: {error}", error=True)
        return 3
    say(*cleanup_lines(answer))
    return 0 if isinstance(answer, dict) and answer.get("status") == "done" else 3


def find_token_of_user() -> str:
    """The token that the environment names, else that of the running stack.

    Raises:
        UsageError: there is none, or it cannot be read.

    """
    try:
        stack = choose().stack
        token = find_token() or (token_of(stack) if stack is not None else None)
    except (OSError, ValueError) as error:
        raise UsageError(f"the token cannot be read: {error}") from None
    if token is None:
        raise UsageError(
            "a cleanup needs the trainer's token: no stack of this user runs, so set HEAPWATCH_TOKEN or "
            "HEAPWATCH_TOKEN_FILE"
        )
    return token
