"""`python -m heapwatch.stack VERB`: what the Makefile's targets call."""

from __future__ import annotations

import os
import shutil
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.markup import escape

from heapwatch.runtime.plain_text import plain
from heapwatch.stack import demo as demonstration
from heapwatch.stack.binaries import find
from heapwatch.stack.compose import ComposeStack, engine_answers
from heapwatch.stack.errors import StackError
from heapwatch.stack.native import NativeStack
from heapwatch.stack.report import Narrator, table
from heapwatch.stack.settings import Settings

Mode = Literal["auto", "native", "docker"]
ModeOption = Annotated[Mode, typer.Option(help="auto: docker where an engine answers, else native.")]
ServiceOption = Annotated[str | None, typer.Option(help="Name of one service.")]

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
console = Console()


def stack(mode: Mode) -> NativeStack | ComposeStack:
    """The stack that `mode` names on this machine."""
    settings = Settings.from_environment()
    native = NativeStack(settings, Narrator(console))
    if mode == "native" or (mode == "auto" and (native.running() or not engine_answers())):
        return native
    return ComposeStack(settings, Narrator(console))


@app.command()
def up(mode: ModeOption = "auto") -> None:
    """Start everything, or bring a running stack up to date; ends when all is healthy."""
    chosen = stack(mode)
    chosen.up()
    show(chosen)


@app.command()
def down(mode: ModeOption = "auto") -> None:
    """Stop everything; what was recorded stays."""
    stack(mode).down()
    console.print("stopped: nothing of the stack is running")


@app.command()
def status(mode: ModeOption = "auto") -> None:
    """Show each service, its address and its state; exit 1 unless all are well."""
    if not show(stack(mode)):
        raise typer.Exit(1)


@app.command()
def logs(
    mode: ModeOption = "auto",
    service: ServiceOption = None,
    lines: Annotated[int, typer.Option(help="Last lines of each log.")] = 40,
    follow: Annotated[bool, typer.Option(help="Go on as lines are written.")] = False,
) -> None:
    """Show the last lines of the services' logs."""
    stack(mode).logs(service or None, lines, follow)


@app.command()
def restart(mode: ModeOption = "auto", service: ServiceOption = None) -> None:
    """Restart one service."""
    if not service:
        raise StackError("which service? make restart SERVICE=receiver")
    stack(mode).restart(service)
    console.print(f"{service} restarted and healthy")


@app.command()
def clean(mode: ModeOption = "auto") -> None:
    """Stop everything and remove what was recorded, downloaded and installed."""
    chosen = stack(mode)
    chosen.down()
    chosen.remove_data()
    state = Settings.from_environment().state
    shutil.rmtree(state, ignore_errors=True)
    console.print(f"removed {state}")


@app.command()
def demo(mode: ModeOption = "auto") -> None:
    """Leak in the running trainer and watch the loop close; exit 0 only if it did."""
    demonstration.run(stack(mode), Settings.from_environment(), console)


@app.command()
def tools() -> None:
    """Find or fetch Prometheus, Alertmanager, promtool and amtool, and print the folders they are in."""
    found = find(Settings.from_environment().state, Narrator(Console(stderr=True)))
    binaries = (found.prometheus, found.promtool, found.alertmanager, found.amtool)
    print(os.pathsep.join(dict.fromkeys(str(binary.path.parent) for binary in binaries)))


def show(chosen: NativeStack | ComposeStack) -> bool:
    """Print the table; whether all is well."""
    rows = chosen.status()
    console.print()
    console.print(table(rows))
    return all(row.well for row in rows)


def main() -> int:
    """Run a verb; a problem is one line on stderr and exit 1."""
    try:
        app()
    except StackError as error:
        Console(stderr=True).print(f"[red]error:[/] {escape(plain(error))}", highlight=False, soft_wrap=True)
        return 1
    return 0
