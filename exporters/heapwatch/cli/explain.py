"""`heapwatch explain`: what grows in a running trainer, or in a recorded run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from heapwatch.attach import CannotAttach
from heapwatch.cli import results
from heapwatch.cli.sources import url_of_process, url_of_trainer
from heapwatch.cli.visit import DEFAULT_SECONDS, visit
from heapwatch.entering.entered_process import CannotEnter
from heapwatch.errors import Unreachable
from heapwatch.explain.findings import Explanation, narrative
from heapwatch.explain.received import MOST_BYTES, explanation_of
from heapwatch.http.client import get_json
from heapwatch.recording.reader import NoRecording, read_explanation
from heapwatch.runtime.plain_text import say, say_json

_EPILOG = """
A process without Heapwatch is entered, and left when the verdict is certain or the time is up. Its program
continues. Ctrl-C leaves at once and prints what is known.

exit codes:
  0   healthy, warm-up, filling, too early or growing
  2   leak or will not fit, or as --fail-on says
  3   no explanation: the trainer does not answer, the process cannot be entered, or the file has none
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
    )
    parser.add_argument(
        "source",
        metavar="URL|FILE|NAME|PID",
        help="a trainer's address, a recording, a registered trainer (see `heapwatch ps`) or a process",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=DEFAULT_SECONDS,
        metavar="N",
        help="longest stay in a process, in seconds (%(default)g)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing; see the exit code")
    parser.add_argument("--json", action="store_true", help="print the JSON of GET /explain")
    results.add_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the explanation, and return the exit code of its verdict."""
    try:
        explanation = _read(arguments)
    except (CannotAttach, CannotEnter, Unreachable, NoRecording) as error:
        say(f"heapwatch: {error}", error=True)
        return 3
    if arguments.json and not arguments.quiet:
        say_json(explanation.as_json())
    elif not arguments.quiet:
        say(*narrative(explanation).split("\n"))
    return results.conclude(explanation, arguments.output, arguments.fail_on)


def _read(arguments: argparse.Namespace) -> Explanation:
    source: str = arguments.source
    if Path(source).is_file():
        try:
            return explanation_of(read_explanation(Path(source)))
        except ValueError as error:
            raise NoRecording(f"{source} holds no explanation that can be shown: {error}") from None
    if source.isascii() and source.isdigit():
        url = url_of_process(int(source))
        return _ask(url) if url else visit(int(source), arguments.seconds, quiet=arguments.quiet)
    if "://" not in source and source.endswith(_FILE_ENDINGS):
        raise NoRecording(f"there is no file {source}")
    return _ask(url_of_trainer(source))


def _ask(url: str) -> Explanation:
    try:
        return explanation_of(get_json(f"{url}/explain", max_bytes=MOST_BYTES))
    except ValueError as error:
        raise Unreachable(f"{url}/explain does not send an explanation: {error}") from None
