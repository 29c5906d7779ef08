"""`heapwatch completion`: the completion script of a shell, and the manual page."""

from __future__ import annotations

import argparse
from typing import Any

_EPILOG = """
bash:  heapwatch completion bash > ~/.local/share/bash-completion/completions/heapwatch
zsh:   heapwatch completion zsh > "${fpath[1]}/_heapwatch"
tcsh:  heapwatch completion tcsh >> ~/.tcshrc
man:   heapwatch completion man > ~/.local/share/man/man1/heapwatch.1
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "completion",
        help="print shell completion, or the manual page",
        description="Print the completion script of a shell, or the manual page.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh", "man"))
    parser.set_defaults(run=run, extra="cli")


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    if arguments.shell == "man":
        from argparse_manpage.manpage import Manpage

        print(Manpage(arguments.parser))
        return 0
    import shtab

    print(shtab.complete(arguments.parser, arguments.shell))
    return 0
