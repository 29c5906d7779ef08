"""`heapwatch run SCRIPT`: run an unchanged program under watch, and explain its growth at the end.

This process executes the interpreter with the program, like `python SCRIPT`. The interpreter imports
`startup/sitecustomize.py` before the program, and that starts the watch.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path
from typing import Any, NoReturn

from heapwatch.cli import above_zero, results
from heapwatch.cli.run_options import RunOptions
from heapwatch.errors import UsageError
from heapwatch.runtime import environment

_STARTUP = Path(__file__).with_name("startup")
_FLAGS, _WITH_VALUE = "bBdEiIOPsSuvx", "WX"
_WITHOUT_US = ("-E", "-I", "-S")
_EPILOG = """
options of Python before SCRIPT, such as -u, -O, -X dev and -W error, are passed on

exit codes:
  that of the program; 0 when --seconds ended it
  2   as --fail-on says, whatever the program's own
  64  the command line is wrong, or there is no such script
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "run",
        help="run a program under watch and report what grows in it",
        description="Run an unchanged Python program under watch, and report at its end what grows.",
        epilog=_EPILOG,
        usage="%(prog)s [--record FILE] [--seconds N] [--json] [-q] [--port N] [--output FILE]"
        " [--fail-on VERDICT] [PYTHON OPTION...]"
        " (SCRIPT | FOLDER | - | -m MODULE | -c CODE) [ARG...]",
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help="record the run for `heapwatch report`")
    parser.add_argument(
        "--seconds",
        type=above_zero("a number of seconds", 1e9),
        metavar="N",
        help="stop the program after N seconds",
    )
    parser.add_argument("--json", action="store_true", help="print the explanation as JSON, last on stdout")
    parser.add_argument("-q", "--quiet", action="store_true", help="print only warnings and leaks")
    parser.add_argument(
        "--port", type=int, metavar="N", help="serve metrics there (HEAPWATCH_TRAINER_PORT, else a free port)"
    )
    results.add_arguments(parser)
    program_kind = parser.add_mutually_exclusive_group()
    for kind, meaning in (("-m", "the name of a module"), ("-c", "Python code")):
        program_kind.add_argument(
            kind, dest="kind", action="store_const", const=kind, default="", help=f"SCRIPT is {meaning}"
        )
    for option in _FLAGS:
        parser.add_argument(f"-{option}", dest="options", nargs=0, action=_PassOn, help=argparse.SUPPRESS)
    for option in _WITH_VALUE:
        parser.add_argument(f"-{option}", dest="options", action=_PassOn, help=argparse.SUPPRESS)
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, metavar="SCRIPT", help="the program and its own arguments"
    )
    parser.set_defaults(run=run, options=[])


class _PassOn(argparse.Action):
    """Collects options for the Python interpreter."""

    def __call__(
        self, parser: object, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        namespace.options = [*namespace.options, option_string, *([values] if values else [])]


def run(arguments: argparse.Namespace) -> NoReturn:
    """Replace this process with the program; raise UsageError if it cannot run under watch."""
    if problem := environment.unread() or _problem(arguments):
        raise UsageError(problem)
    try:
        port = environment.trainer_port() if arguments.port is None else arguments.port
    except ValueError as error:
        raise UsageError(str(error)) from None
    options = RunOptions(
        name=_name(arguments),
        port=port or 0,
        record=None if arguments.record is None else str(arguments.record),
        seconds=arguments.seconds,
        prints_json=arguments.json,
        is_quiet=arguments.quiet,
        output=tuple(map(str, arguments.output)),
        fail_on=arguments.fail_on,
        python_path=os.environ.get("PYTHONPATH"),
    )
    kind = [arguments.kind] if arguments.kind else []
    command = [sys.executable, *arguments.options, *kind, *arguments.program]
    sys.stdout.flush()
    os.execve(command[0], command, options.environment(str(_STARTUP)))


def _problem(arguments: argparse.Namespace) -> str:
    """Return why the program cannot run under watch; empty if it can."""
    if not arguments.program:
        return "run needs a script, or -m and a module"
    script = arguments.program[0]
    if not arguments.kind and script != "-" and not os.path.exists(script):
        return f"cannot open {script!r}: No such file or directory"
    excluding = [option for option in arguments.options if option in _WITHOUT_US]
    if excluding:
        return f"{excluding[0]} keeps Heapwatch out of the program: call heapwatch.start() in it"
    return ""


def _name(arguments: argparse.Namespace) -> str:
    name = "code" if arguments.kind == "-c" or arguments.program[0] == "-" else arguments.program[0]
    if not arguments.kind:
        name = os.path.splitext(os.path.basename(os.path.normpath(name)))[0]
    return re.sub(r"[^\w.-]", "_", name)[:64] or "trainer"
