"""`heapwatch top`: what grows and what holds memory on this machine or in one trainer, on one screen."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any

from heapwatch.cli import above_zero
from heapwatch.cli.followed import DIED, DIED_MEANS, Ended
from heapwatch.cli.sources import registered_trainers, url_of
from heapwatch.cli.top_machine import MachineSource
from heapwatch.cli.top_machine import printed as printed_rows
from heapwatch.cli.top_source import Entered, Served, Snapshot, Source, printed
from heapwatch.entering.entered_process import CannotEnter
from heapwatch.errors import Unreachable, UsageError
from heapwatch.judge.verdict import exit_code
from heapwatch.text.terminal import say, say_json

_EPILOG = f"""
keys: s sorts by growth, bytes, items or path; Enter shows all details of a path; q quits. Without a source
all processes of this user are shown in groups; Enter looks into one of a group.

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
        help="watch what grows on this machine, or in a trainer, on one screen",
        description="Watch what grows and what holds memory on this machine, or in a trainer, on one screen.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "source",
        nargs="?",
        metavar="PID|NAME|URL",
        help="a process, a registered trainer or an address; by default all processes of this machine",
    )
    parser.add_argument(
        "--all-users", action="store_true", help="without a source: show processes of other users, too"
    )
    parser.add_argument(
        "--interval",
        type=above_zero(most=1e9),
        default=2.0,
        metavar="S",
        help="seconds between updates (%(default)g)",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--once", action="store_true", help="print the current state, and end")
    output.add_argument("--json", action="store_true", help="print it as JSON, and end")
    parser.set_defaults(run=run, extra="cli")


def run(arguments: argparse.Namespace) -> int:
    """Show the screen until the user quits, or print once; return the exit code."""
    once = arguments.once or arguments.json
    if not (once or (sys.stdout.isatty() and sys.stdin.isatty())):
        raise UsageError("the screen needs a terminal; --once prints")
    is_of_machine = arguments.source is None and os.path.isdir("/proc/self")  # elsewhere trainers alone
    if is_of_machine and not once:
        return _machine_on_screen(arguments)
    urls = registered_trainers() if arguments.source is None else []
    rows = MachineSource(everyone=arguments.all_users).read_for() if is_of_machine else None
    try:
        if arguments.source is not None:
            url = url_of(arguments.source)
            urls = [] if url is None else [url]
        elif not once and len(urls) != 1:
            raise UsageError(f"{len(urls)} trainers are registered: name one; --once prints all")
        snapshots, end = _shown(arguments.source, urls, None if once else arguments.interval)
    except (CannotEnter, Unreachable) as error:
        say(f"heapwatch: {error}", error=True)
        return 3
    if arguments.json:
        trainers = [asdict(one) for one in snapshots]
        say_json(trainers if rows is None else {"groups": list(map(asdict, rows)), "trainers": trainers})
    elif once:
        say(*([] if rows is None else printed_rows(rows)), *printed(snapshots))
    if end is None:
        return _exit_code(snapshots)
    say(f"heapwatch: {end}", error=True)
    return end.exit_code or (_exit_code(snapshots) if snapshots else 3)


def _shown(
    source: str | None, urls: list[str], interval: float | None
) -> tuple[Sequence[Snapshot], Ended | None]:
    """Show trainers that serve, or a process that is entered, until the user quits; without interval once.

    Returns:
        What was read last, and the end of the process if that came meanwhile.

    Raises:
        CannotEnter: the process cannot be entered.

    """
    try:
        with nullcontext(Served(urls)) if urls or source is None else Entered(int(source)) as opened:
            snapshots = opened.read() if interval is None else _on_screen(opened, interval)
    except Ended as end:
        return [], end
    return snapshots, opened.end


def _on_screen(source: Source, interval: float) -> Sequence[Snapshot]:
    """Show a source until the user quits; return the last snapshot."""
    from heapwatch.cli.top_screen import TopScreen

    screen = TopScreen(source, interval)
    screen.run()
    return [] if screen.snapshot is None else [screen.snapshot]


def _machine_on_screen(arguments: argparse.Namespace) -> int:
    """Show the groups of the machine, and the processes that the user chooses."""
    from heapwatch.cli.top_screen import MachineScreen

    machine = MachineSource(everyone=arguments.all_users)
    while (row := MachineScreen(machine.read, arguments.interval).run()) is not None:
        try:
            _, end = _shown(str(row.pid), [row.url] if row.url else [], arguments.interval)
        except CannotEnter as error:
            say(f"heapwatch: {error}", error=True)
            return 3
        if end is not None:
            say(f"heapwatch: {end}", error=True)
            return end.exit_code
    return 0


def _exit_code(snapshots: Sequence[Snapshot]) -> int:
    if snapshots and all(one.problem for one in snapshots):
        return 3
    return max((exit_code(one.verdict) for one in snapshots if one.verdict), default=0)
