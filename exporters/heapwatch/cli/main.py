"""The `heapwatch` console script: finds the subcommand and runs it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from heapwatch.cli import attach, doctor, monitor, report, run
from heapwatch.errors import UsageError
from heapwatch.runtime.plain_text import plain

USAGE_ERROR = 64  # EX_USAGE of sysexits.h: 1 to 3 say how the trainers are


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.format_usage()}{self.prog}: error: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line given, or the process's own, and return its exit code."""
    parser = _Parser(prog="heapwatch", description="Watch the memory of reinforcement-learning trainers.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in (run, monitor, report, attach, doctor):
        command.add_parser(commands)
    parsed = parser.parse_args(arguments)
    try:
        code: int = parsed.run(parsed)
    except UsageError as error:
        print(plain(f"heapwatch: {error}"), file=sys.stderr)
        return USAGE_ERROR
    except BrokenPipeError:  # `heapwatch ... | head`
        sys.stderr.close()
        return 0
    return code


if __name__ == "__main__":
    sys.exit(main())
