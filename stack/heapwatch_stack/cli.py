"""The stack's subcommands of `heapwatch`. Optional packages are imported when a command runs."""

from __future__ import annotations

import argparse
import shlex
import shutil
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from heapwatch.stacks import same_folder, user_folder
from heapwatch.text.terminal import say, say_json
from heapwatch_stack.errors import StackError
from heapwatch_stack.settings import Settings

if TYPE_CHECKING:
    from heapwatch_stack.demo import Stack
    from heapwatch_stack.report import ServiceStatus

EXTRA = "stack"


def add_parser(commands: Any) -> None:
    """Add the subcommands."""
    parsers = {}
    for name, (run, text) in _COMMANDS.items():
        parsers[name] = parser = commands.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}."
        )
        parser.add_argument(
            "--mode",
            choices=("auto", "native", "docker"),
            default="auto",
            help="auto: docker in a clone if a Docker engine answers, else native (%(default)s)",
        )
        parser.set_defaults(run=_errors_in_one_line(run), extra=EXTRA)
    parsers["status"].add_argument("--json", action="store_true", help="print JSON, one object per service")
    logs = parsers["logs"]
    logs.add_argument("--service", metavar="NAME", help="one service (all)")
    logs.add_argument(
        "--lines", type=int, default=40, metavar="N", help="last lines of each log (%(default)s)"
    )
    logs.add_argument("--follow", action="store_true", help="print new lines as they come")
    parsers["restart"].add_argument(
        "--service", metavar="NAME", required=True, help="name, as in `heapwatch status`"
    )


def _errors_in_one_line(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Report an error as one line on stderr, with exit code 1."""

    def command(arguments: argparse.Namespace) -> int:
        try:
            return run(arguments)
        except StackError as error:
            problem = str(error)
        except BrokenPipeError:
            raise
        except OSError as error:  # a full or read-only disk, a folder of another user
            where = f"{error.filename}: " if error.filename else ""
            problem = f"{where}{error.strerror or error}"
        say(f"error: {problem}", error=True)
        return 1

    return command


def chosen_stack(mode: str) -> Stack:
    """The stack that `mode` names on this machine."""
    from heapwatch.text.terminal import console
    from heapwatch_stack.compose import ComposeStack, engine_answers
    from heapwatch_stack.native import NativeStack
    from heapwatch_stack.report import Narrator

    settings = Settings.from_environment()
    tell = Narrator(console())
    if mode != "docker":
        native = NativeStack(settings, tell)
        if mode == "native" or settings.checkout is None or native.running() or not engine_answers():
            return native
    return ComposeStack(settings, tell)


def up(arguments: argparse.Namespace) -> int:
    """Start the stack, wait for it, and print the addresses."""
    stack = chosen_stack(arguments.mode)
    stack.up()
    show(stack.status())
    say(*how_to_go_on(Settings.from_environment()).split("\n"))
    return 0


def down(arguments: argparse.Namespace) -> int:
    """Stop the stack."""
    chosen_stack(arguments.mode).down()
    say("stopped: nothing of the stack is running")
    return 0


def show_status(arguments: argparse.Namespace) -> int:
    """Print the table of services; returns 1 unless all are healthy."""
    rows = chosen_stack(arguments.mode).status()
    if arguments.json:
        say_json([asdict(row) | {"healthy": row.healthy} for row in rows])
    else:
        show(rows)
    return 0 if all(row.healthy for row in rows) else 1


def show_logs(arguments: argparse.Namespace) -> int:
    """Print logs."""
    chosen_stack(arguments.mode).logs(arguments.service, arguments.lines, arguments.follow)
    return 0


def restart_service(arguments: argparse.Namespace) -> int:
    """Restart one service."""
    chosen_stack(arguments.mode).restart(arguments.service)
    say(f"{arguments.service} restarted and healthy")
    return 0


def clean(arguments: argparse.Namespace) -> int:
    """Stop the stack, and remove the files that heapwatch made."""
    from heapwatch_stack import state_folder

    state = Settings.from_environment().state
    if not state.exists():
        say(f"there is no {state}")
        return 0
    if not state_folder.carried_by(state):
        raise StackError(f"heapwatch did not make {state}: nothing was removed")
    stack = chosen_stack(arguments.mode)
    stack.down()
    stack.remove_data()
    shutil.rmtree(state)
    say(f"removed {state}")
    return 0


def demonstrate(arguments: argparse.Namespace) -> int:
    """Run the demonstration."""
    from heapwatch.text.terminal import console
    from heapwatch_stack import demo

    demo.run(chosen_stack(arguments.mode), Settings.from_environment(), console())
    return 0


def print_tools(_arguments: argparse.Namespace) -> int:
    """Print a folder for PATH."""
    from heapwatch.text.terminal import console
    from heapwatch_stack.binaries import find, link_tools
    from heapwatch_stack.report import Narrator

    settings = Settings.from_environment()
    say(link_tools(settings, find(settings, Narrator(console(error=True)))))
    return 0


def show(rows: list[ServiceStatus]) -> None:
    """Print the table."""
    from heapwatch.text.terminal import console
    from heapwatch_stack.report import table

    terminal = console()
    terminal.print()
    terminal.print(table(rows))


def how_to_go_on(settings: Settings) -> str:
    """The commands to continue with, and the state folder, by which a trainer joins this stack."""
    program = "make" if settings.checkout else "heapwatch"
    joins = ""
    if not same_folder(settings.state, user_folder(settings.environment) / "stack"):
        joins = f"\na trainer joins this stack with HEAPWATCH_STATE={shlex.quote(str(settings.state))}"
    return f"\n{program} status | logs | demo | down    state: {settings.state}{joins}"


_COMMANDS: dict[str, tuple[Callable[[argparse.Namespace], int], str]] = {
    "up": (up, "start the stack, or apply changes to a running one; returns when all is healthy"),
    "down": (down, "stop the stack; recorded data stays"),
    "status": (show_status, "show each service, its address and state; exit 1 if one is unhealthy"),
    "logs": (show_logs, "show the last lines of the logs"),
    "restart": (restart_service, "restart one service and wait for it"),
    "demo": (demonstrate, "make a trainer leak and follow alert and cleanup; exit 0 only if it worked"),
    "clean": (clean, "stop the stack and remove everything that it wrote"),
    "tools": (print_tools, "find or download Prometheus and Alertmanager; print a folder for PATH"),
}
