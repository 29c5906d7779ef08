"""The `heapwatch` console script: finds the subcommand and runs it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import heapwatch
from heapwatch.errors import UsageError
from heapwatch.text.terminal import say

USAGE_ERROR = 64  # EX_USAGE of sysexits.h; 1 to 3 report the state of trainers
# The module of each command; only that of the given command is imported.
_MODULES = {
    **{
        verb: f"heapwatch.cli.{verb}"
        for verb in ("run", "explain", "top", "node", "ray", "report", "monitor", "cleanup")
    },
    **dict.fromkeys(("attach", "detach"), "heapwatch.cli.attach"),
    **dict.fromkeys(
        ("up", "down", "status", "logs", "restart", "demo", "clean", "tools"), "heapwatch_stack.cli"
    ),
    **dict.fromkeys(("rules", "dashboards", "receiver", "viewer"), "heapwatch.cli.parts"),
}


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        if options.get("epilog"):  # lines that are aligned
            options["formatter_class"] = argparse.RawDescriptionHelpFormatter
        super().__init__(**options)

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        say(f"{self.prog}: error: {message}", error=True)
        self.exit(USAGE_ERROR)


def _parser(verb: str = "") -> _Parser:
    """Return the parser of the command line; with a verb it has the parser of that command only."""
    top = _Parser(prog="heapwatch", description="Watch the memory of reinforcement-learning trainers.")
    subcommands = top.add_subparsers(metavar="COMMAND", required=True)
    for module in dict.fromkeys([_MODULES[verb]] if verb in _MODULES else _MODULES.values()):
        import_module(module).add_parser(subcommands)
    if verb not in _MODULES:
        top.add_argument("--version", action="version", version=f"heapwatch {heapwatch.__version__}")
    for parser in subcommands.choices.values():
        parser.set_defaults(command=parser)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run these arguments, by default those of the process, and return the exit code."""
    words = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    options, unknown = _parser(*words[:1]).parse_known_args(words)
    if unknown:
        options.command.error(f"unrecognized arguments: {' '.join(unknown)}")
    try:
        code: int = options.run(options)
    except UsageError as error:
        say(f"heapwatch: {error}", error=True)
        return USAGE_ERROR
    except ModuleNotFoundError as error:
        extra = getattr(options, "extra", None)
        module = (error.name or "").partition(".")[0]
        if extra is None or module == "heapwatch":
            raise
        say(f"error: this command needs {module}: pip install 'heapwatch[{extra}]'", error=True)
        return 1
    except BrokenPipeError:  # `heapwatch ... | head`
        sys.stderr.close()
        return 0
    return code


if __name__ == "__main__":
    sys.exit(main())
