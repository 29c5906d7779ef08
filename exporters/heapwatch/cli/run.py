"""`heapwatch run SCRIPT`: run an unchanged program under watch, and explain its growth at the end."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

from heapwatch.cli.program import CannotRun, Program
from heapwatch.errors import reason
from heapwatch.explain.findings import Explanation, narrative
from heapwatch.lifecycle import start

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
        usage="%(prog)s [--record FILE] [--seconds N] [--json] [--port N] (SCRIPT | -m MODULE) [ARG...]",
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="record the run for `heapwatch report`")
    parser.add_argument("--seconds", type=_seconds, metavar="N", help="stop the program after N seconds")
    parser.add_argument("--json", action="store_true", help="print the explanation as JSON, last on stdout")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="serve metrics there (a free port)")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, metavar="SCRIPT", help="the program and its own arguments"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the program, print the explanation, and return the program's exit code."""
    try:
        program = Program(arguments.program, module=arguments.module)
    except CannotRun as error:
        print(f"heapwatch: {error}", file=sys.stderr)
        return 64
    try:
        watch = start(_name(program.name), port=arguments.port, record=arguments.record)
    except (OSError, ValueError) as error:
        print(f"heapwatch: {reason(error)}", file=sys.stderr)
        return 64
    process = os.getpid()
    explainer = watch.exporter.explainer
    ended = program.run(arguments.seconds, before_end=explainer.explain_now)
    if os.getpid() != process:
        return ended.code  # a child that the program forked: the explanation is the parent's
    explanation = ended.result if isinstance(ended.result, Explanation) else explainer.explain_now()
    watch.exporter.stop(log_findings=False, failure=_failure(ended.code))
    _print(explanation, arguments.json)
    ended.leave()
    return ended.code


def _print(explanation: Explanation, as_json: bool) -> None:
    if as_json:
        print(json.dumps(explanation.as_json(), indent=2), flush=True)
        return
    print(f"heapwatch: {narrative(explanation)}", file=sys.stderr)


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
