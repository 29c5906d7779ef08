"""`heapwatch run SCRIPT`: run an unchanged program under watch, and explain its growth at the end."""

from __future__ import annotations

import argparse
import logging
import os
import re
import signal
from pathlib import Path
from typing import Any

from heapwatch.analysis.verdict import SERIOUS
from heapwatch.cli.program import CannotRun, Program
from heapwatch.errors import UsageError, reason
from heapwatch.explain.findings import Explanation, narrative
from heapwatch.lifecycle import port_from_environment, start
from heapwatch.runtime import environment
from heapwatch.runtime.notices import show_notices
from heapwatch.runtime.plain_text import say, say_json

_TO_BE_TOLD = ("growing", *SERIOUS)
_EPILOG = """
exit codes:
  that of the program; 0 when --seconds ended it
  64  the command line is wrong, or there is no such program
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "run",
        help="run a program under watch and report what grows in it",
        description="Run an unchanged Python program under watch, and report at its end what grows.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [--record FILE] [--seconds N] [--json] [-q] [--port N] (SCRIPT | -m MODULE) [ARG...]",
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="record the run for `heapwatch report`")
    parser.add_argument("--seconds", type=_seconds, metavar="N", help="stop the program after N seconds")
    parser.add_argument("--json", action="store_true", help="print the explanation as JSON, last on stdout")
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="print nothing of its own but warnings and leaks"
    )
    parser.add_argument(
        "--port", type=int, metavar="N", help="serve metrics there (HEAPWATCH_TRAINER_PORT, else a free port)"
    )
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, metavar="SCRIPT", help="the program and its own arguments"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the program, print the explanation, and return the program's exit code."""
    if unread := environment.unread():
        raise UsageError(unread)
    if arguments.quiet:
        show_notices()
        logging.getLogger("heapwatch").setLevel(logging.WARNING)
    try:
        program = Program(arguments.program, module=arguments.module)
    except CannotRun as error:
        say(f"heapwatch: {error}", error=True)
        return 64
    try:
        watch = start(_name(program.name), port=_port(arguments.port), record=arguments.record)
    except (OSError, ValueError) as error:
        say(f"heapwatch: {reason(error)}", error=True)
        return 64
    process = os.getpid()
    explainer = watch.exporter.explainer
    ended = program.run(arguments.seconds, before_end=explainer.explain_now)
    if os.getpid() != process:
        return ended.code  # a child that the program forked: the explanation is the parent's
    explanation = ended.result if isinstance(ended.result, Explanation) else explainer.explain_now()
    watch.exporter.stop(log_findings=False, failure=_failure(ended.code))
    if not explainer.enabled and not arguments.json:
        environment.say_once(f"{environment.EXPLAIN} is off: what grows is not known")
    elif arguments.json or explanation.verdict in _TO_BE_TOLD or not arguments.quiet:
        _print(explanation, arguments.json)
    ended.leave()
    return ended.code


def _print(explanation: Explanation, as_json: bool) -> None:
    if as_json:
        say_json(explanation.as_json())
        return
    say(*f"heapwatch: {narrative(explanation)}".split("\n"), error=True)


def _port(given: int | None) -> int:
    if given is not None:
        return given
    named = port_from_environment()
    return 0 if named is None else named


def _failure(code: int) -> str:
    """Why the program failed; empty if it ended well or by Ctrl-C."""
    if code in (0, 128 + signal.SIGINT):
        return ""
    try:
        return f"ended by {signal.Signals(code - 128).name}"
    except ValueError:
        return f"exit status {code}"


def _name(program: str) -> str:
    return re.sub(r"[^\w.-]", "_", program)[:64] or "trainer"


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value
