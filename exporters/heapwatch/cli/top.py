"""`heapwatch top`: what grows and what holds memory in running trainers, on one screen."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any

from heapwatch.cli import above_zero
from heapwatch.cli.followed import DIED, DIED_MEANS, Ended
from heapwatch.cli.sources import none_registered, registered_trainers, url_of
from heapwatch.cli.top_source import Entered, Served, Snapshot, Source, printed
from heapwatch.entering.entered_process import CannotEnter
from heapwatch.errors import Unreachable, UsageError
from heapwatch.judge.verdict import exit_code
from heapwatch.text.terminal import say, say_json

_EPILOG = f"""
keys: s sorts by growth, bytes, items or path; / filters, Escape ends that; Enter shows all details of a path;
q quits

A process without Heapwatch is entered, and left at the end. Its program continues.

exit codes, of the worst trainer:
  0   healthy, warm-up, filling, too early or growing
  2   leak or will not fit
  3   none answers, or the process cannot be entered or has ended
  {DIED}   {DIED_MEANS}
  64  the command line is wrong
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "top",
        help="watch what grows in running trainers, on one screen",
        description="Watch what grows and what holds memory in running trainers, on one screen.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "source",
        nargs="?",
        metavar="PID|NAME|URL",
        help="a process, a registered trainer or an address; by default all trainers of this machine",
    )
    parser.add_argument(
        "--interval",
        type=above_zero(most=1e9),
        default=2.0,
        metavar="S",
        help="seconds between updates (%(default)g)",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--once", action="store_true", help="print the current state, and end")
    how.add_argument("--json", action="store_true", help="print it as JSON, one object per trainer, and end")
    parser.set_defaults(run=run, extra="cli")


def run(arguments: argparse.Namespace) -> int:
    """Show the screen until it is left, or print once; return the exit code."""
    once = arguments.once or arguments.json
    if not (once or (sys.stdout.isatty() and sys.stdin.isatty())):
        raise UsageError("the screen needs a terminal; --once prints")
    try:
        urls = _urls(arguments.source)
        with nullcontext(Served(urls)) if urls else Entered(int(arguments.source)) as source:
            found = source.read() if once else _on_screen(source, arguments.interval)
    except Ended as end:
        say(f"heapwatch: {end}", error=True)
        return end.exit_code or 3
    except (CannotEnter, Unreachable) as error:
        say(f"heapwatch: {error}", error=True)
        return 3
    if arguments.json:
        say_json([asdict(one) for one in found])
    elif once:
        say(*printed(found))
    if source.end is not None:
        say(f"heapwatch: {source.end}", error=True)
    return (source.end and source.end.exit_code) or _exit_code(found)


def _on_screen(source: Source, interval: float) -> Sequence[Snapshot]:
    """Show a source until the user quits; what was read last."""
    from heapwatch.cli.top_screen import TopScreen

    screen = TopScreen(source, interval)
    screen.run()
    return screen.snapshots


def _urls(source: str | None) -> list[str]:
    """The addresses to read; empty for a process that has none."""
    if source is None:
        if not (found := registered_trainers()):
            raise UsageError(f"{none_registered()}; give a PID or an address")
        return found
    url = url_of(source)
    return [] if url is None else [url]


def _exit_code(found: Sequence[Snapshot]) -> int:
    if all(one.problem for one in found):
        return 3
    return max((exit_code(one.verdict) for one in found if one.verdict), default=0)
