"""Finds a running stack by the file in its state folder that names its targets folder and token file."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from heapwatch.runtime.own_files import read_json, replace

# Names of files in a state folder: in every one, and in that of a running stack.
MARK = ".made-by-heapwatch"
ANNOUNCED = "stack.json"
_CONNECT_SECONDS = 0.2


@dataclass(frozen=True)
class Stack:
    """What a trainer of the same user needs to know about a stack.

    Args:
        state: its state folder.
        targets: the folder its Prometheus reads trainers from; empty where it does not see this machine.
        token_file: the bearer token its receiver sends.
        answers_at: where its first process listens: `unix:PATH` or `tcp:HOST:PORT`.

    """

    state: str
    targets: str
    token_file: str
    answers_at: str

    def answers(self) -> bool:
        """Whether the stack runs; its file may be left over from a crash."""
        kind, _, address = self.answers_at.partition(":")
        try:
            if kind == "unix":
                with socket.socket(socket.AF_UNIX) as client:
                    client.settimeout(_CONNECT_SECONDS)
                    client.connect(address)
            else:
                host, _, port = address.rpartition(":")
                socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
        except (OSError, ValueError):
            return False
        return True


def user_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of this user's state: `heapwatch` in XDG_STATE_HOME or `~/.local/state`.

    Raises:
        OSError: the user has no home folder.

    """
    return expanded(environ.get("XDG_STATE_HOME") or "~/.local/state") / "heapwatch"


def default_state(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the default state folder of the stack that `heapwatch up` starts and trainers join.

    This is the folder of the clone whose virtual environment runs this code, else `stack` in the user's
    folder.

    Raises:
        OSError: the user has no home folder.

    """
    checkout = _around()
    return checkout if (checkout / MARK).is_file() else user_folder(environ) / "stack"


def _around() -> Path:
    return Path(sys.prefix).parent


def expanded(path: str) -> Path:
    """Return a path with `~` expanded.

    Raises:
        OSError: there is no such home folder.

    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise OSError(f"{path}: {error}") from None


def announce(stack: Stack) -> None:
    """Write the stack's file, mode 0600.

    Raises:
        OSError: the state folder cannot be written.

    """
    replace(Path(stack.state, ANNOUNCED), json.dumps(asdict(stack), indent=2))


def withdraw(state: Path) -> None:
    """Remove the file of the stack in `state`; harmless when there is none."""
    with suppress(OSError):
        (state / ANNOUNCED).unlink()


def running_in(state: Path) -> Stack | None:
    """Return the stack of this state folder if it answers.

    A file is ignored if it belongs to another user, or another user could have written it.
    """
    try:
        stack = Stack(**read_json(state / ANNOUNCED, private=True))
    except (OSError, ValueError, TypeError):
        return None
    return stack if stack.answers() else None


def same_folder(first: str | Path, second: str | Path) -> bool:
    """Whether two paths lead to one folder."""
    return os.path.realpath(first) == os.path.realpath(second)
