"""The running stacks of this user: a small file of each names its targets folder and its token file."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from heapwatch.runtime.own_files import make_private, read_json, replace

# Its name is that of a file in every state folder.
MARK = ".made-by-heapwatch"
_CONNECT_SECONDS = 0.2


@dataclass(frozen=True)
class Stack:
    """What a trainer of the same user needs to know about a stack.

    Args:
        state: its state folder.
        targets: the folder its Prometheus reads trainers from; empty where it does not see this machine.
        token_file: the bearer token its receiver sends.
        dashboards: the address to look at.
        answers_at: where its first process listens: `unix:PATH` or `tcp:HOST:PORT`.
        started: when it was last brought up, in Unix seconds.

    """

    state: str
    targets: str
    token_file: str
    dashboards: str
    answers_at: str
    started: float

    def answers(self) -> bool:
        """Whether it runs; its file may be left over from a crash."""
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
    """The folder of this user's state, `heapwatch` in XDG_STATE_HOME or `~/.local/state`.

    Raises:
        OSError: the user has no home folder.

    """
    return expanded(environ.get("XDG_STATE_HOME") or "~/.local/state") / "heapwatch"


def default_state(environ: Mapping[str, str] = os.environ) -> Path:
    """The state folder of the stack that `heapwatch up` starts and a trainer joins, where none is named.

    That of the clone whose virtual environment runs this, else `stack` in the user's folder.

    Raises:
        OSError: the user has no home folder.

    """
    around = _around()
    return around if (around / MARK).is_file() else user_folder(environ) / "stack"


def _around() -> Path:
    return Path(sys.prefix).parent


def expanded(path: str) -> Path:
    """A path of the environment, `~` replaced.

    Raises:
        OSError: there is no such home folder.

    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise OSError(f"{path}: {error}") from None


def announce(stack: Stack, environ: Mapping[str, str] = os.environ) -> None:
    """Write the stack's file, mode 0600 in a folder of mode 0700.

    Raises:
        OSError: the folder cannot be written.

    """
    file = _file_of(stack.state, environ)
    make_private(file.parent)
    replace(file, json.dumps(asdict(stack), indent=2))


def withdraw(state: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Remove the file of the stack in `state`; harmless when there is none."""
    with suppress(OSError):
        _file_of(str(state), environ).unlink(missing_ok=True)


def running(environ: Mapping[str, str] = os.environ) -> list[Stack]:
    """The stacks of this user that answer: those that see this machine's trainers first, newest first.

    Files that belong to another user, or that another user could have written, are skipped.
    """
    try:
        files = sorted((user_folder(environ) / "stacks").glob("*.json"))
    except OSError:
        return []
    found = []
    for file in files:
        with suppress(OSError, ValueError, TypeError):
            stack = Stack(**read_json(file, private=True))
            if stack.answers():
                found.append(stack)
    return sorted(found, key=lambda stack: (bool(stack.targets), stack.started), reverse=True)


def same_folder(one: str | Path, other: str | Path) -> bool:
    """Whether two paths lead to one folder."""
    return os.path.realpath(one) == os.path.realpath(other)


def _file_of(state: str, environ: Mapping[str, str]) -> Path:
    name = hashlib.sha256(os.fsencode(os.path.realpath(state))).hexdigest()[:16]
    return user_folder(environ) / "stacks" / f"{name}.json"
