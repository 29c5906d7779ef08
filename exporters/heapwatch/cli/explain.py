"""`heapwatch explain`: what grows in a running trainer, or in a recorded run."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from heapwatch.analysis.verdict import exit_code
from heapwatch.discovery import addresses_of
from heapwatch.errors import Unreachable
from heapwatch.explain.findings import Explanation, narrative
from heapwatch.explain.received import MOST_BYTES, explanation_of
from heapwatch.http.client import base_url, get_json
from heapwatch.recording.reader import NoRecording, read_explanation
from heapwatch.registration import folders
from heapwatch.runtime.plain_text import say, say_json

_EPILOG = """
exit codes:
  0   healthy, warm-up, filling, too early or growing
  2   leak or will not fit
  3   no explanation: the trainer does not answer, or the file has none
  64  the command line is wrong
"""

_FILE_ENDINGS = (".jsonl", ".json", ".gz")


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "explain",
        help="show what grows in a running trainer or a recorded run",
        description="Show what grows in a trainer, what holds it, and remedies.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "source", metavar="URL|FILE|PID", help="a trainer's address, a recording or a process"
    )
    parser.add_argument("--json", action="store_true", help="print the JSON of GET /explain")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the explanation, and return whether there is a leak."""
    try:
        explanation = _read(arguments.source)
    except (Unreachable, NoRecording) as error:
        say(f"heapwatch: {error}", error=True)
        return 3
    if arguments.json:
        say_json(explanation.as_json())
    else:
        say(*narrative(explanation).split("\n"))
    return exit_code(explanation.verdict)


def _read(source: str) -> Explanation:
    if source.isdigit() and not Path(source).exists():
        return _ask(_address_of(int(source)))
    if Path(source).exists():
        try:
            return explanation_of(read_explanation(Path(source)))
        except ValueError as error:
            raise NoRecording(f"{source} holds no explanation that can be shown: {error}") from None
    if "://" not in source and source.endswith(_FILE_ENDINGS):
        raise NoRecording(f"there is no file {source}")
    return _ask(source)


def _ask(url: str) -> Explanation:
    address = base_url(url)
    try:
        return explanation_of(get_json(f"{address}/explain", max_bytes=MOST_BYTES))
    except ValueError as error:
        raise Unreachable(f"{address}/explain does not send an explanation: {error}") from None


def _address_of(pid: int) -> str:
    """The address that a process of this user serves at.

    Raises:
        Unreachable: there is no such process, or it does not serve; the message says what to do.

    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        raise Unreachable(f"there is no process {pid}") from None
    except PermissionError:
        raise Unreachable(f"process {pid} belongs to another user") from None
    found = [address for folder in folders() for address in addresses_of(folder, pid)]
    if not found:
        raise Unreachable(
            f"process {pid} does not run Heapwatch: start it with `heapwatch run`, have it call"
            f" heapwatch.start(), or on Python 3.14 and newer use `heapwatch attach {pid}`"
        )
    return found[0]
