"""The file by which this user's trainers find the running stack."""

from __future__ import annotations

import time
from pathlib import Path

from heapwatch import stacks
from heapwatch_stack.errors import StackError
from heapwatch_stack.settings import Settings


def announce(settings: Settings, answers_at: str, targets: Path | None) -> None:
    """Write the file.

    Args:
        settings: settings of the stack.
        answers_at: address of its first process, see `heapwatch.stacks.Stack`.
        targets: folder of the targets for its Prometheus; None if that cannot reach this machine's trainers.

    Raises:
        StackError: the user's state folder cannot be written.

    """
    stack = stacks.Stack(
        state=str(settings.state),
        targets="" if targets is None else str(targets),
        token_file=str(settings.token_file),
        dashboards=f"{settings.dashboards_url}/",
        answers_at=answers_at,
        started=time.time(),
    )
    try:
        stacks.announce(stack, settings.environment)
    except OSError as error:
        raise StackError(
            f"trainers cannot find this stack: {error}; set XDG_STATE_HOME to a folder of yours"
        ) from error


def withdraw(settings: Settings) -> None:
    """Remove the file."""
    stacks.withdraw(settings.state, settings.environment)
