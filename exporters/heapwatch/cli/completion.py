"""`heapwatch completion SHELL`: the shell's completion script."""

from __future__ import annotations

import argparse
from typing import Any

_EPILOG = """
bash:  heapwatch completion bash > ~/.local/share/bash-completion/completions/heapwatch
zsh:   heapwatch completion zsh > "${fpath[1]}/_heapwatch"
tcsh:  heapwatch completion tcsh >> ~/.tcshrc
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "completion",
        help="print shell completion",
        description="Print the completion script for a shell.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    parser.set_defaults(run=run, extra="cli")


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    import shtab

    print(shtab.complete(arguments.parser, arguments.shell))
    return 0
