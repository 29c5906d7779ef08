"""The running stacks of this user: a small file of each names its targets folder and its token file."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

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
    try:
        return Path(environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "heapwatch"
    except RuntimeError as error:
        raise OSError(str(error)) from None


def announce(stack: Stack, environ: Mapping[str, str] = os.environ) -> None:
    """Write the stack's file, mode 0600 in a folder of mode 0700.

    Raises:
        OSError: the folder cannot be written.

    """
    file = _file_of(stack.state, environ)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.parent.chmod(0o700)
    partial = file.with_suffix(f".{os.getpid()}")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        json.dump(asdict(stack), stream, indent=2)
    partial.replace(file)


def withdraw(state: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Remove the file of the stack in `state`; harmless when there is none."""
    with suppress(OSError):
        _file_of(str(state), environ).unlink(missing_ok=True)


def running(environ: Mapping[str, str] = os.environ) -> list[Stack]:
    """The stacks of this user that answer: those that see this machine's trainers first, newest first.

    Files that belong to another user, or that another user could have written, are skipped.
    """
    if not hasattr(os, "getuid"):  # no owner to be checked, and no native stack either
        return []
    try:
        files = sorted((user_folder(environ) / "stacks").glob("*.json"))
    except OSError:
        return []
    found = []
    for file in files:
        with suppress(OSError, ValueError, TypeError):
            stack = Stack(**json.loads(private_text(file)))
            if stack.answers():
                found.append(stack)
    return sorted(found, key=lambda stack: (bool(stack.targets), stack.started), reverse=True)


def private_text(file: Path) -> str:
    """The text of a file that belongs to this user and that no other user may read.

    Raises:
        OSError: it cannot be read; PermissionError when others may read it, or it is another user's.

    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, encoding="utf-8") as stream:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise PermissionError(f"{file} is not a regular file")
        if found.st_uid != os.getuid():
            raise PermissionError(f"{file} belongs to another user (uid {found.st_uid})")
        if found.st_mode & 0o077:
            raise PermissionError(f"others may read {file} (mode {found.st_mode & 0o777:04o}): chmod 600 it")
        return stream.read()


def same_folder(one: str | Path, other: str | Path) -> bool:
    """Whether two paths lead to one folder."""
    return os.path.realpath(one) == os.path.realpath(other)


def _file_of(state: str, environ: Mapping[str, str]) -> Path:
    name = hashlib.sha256(os.fsencode(os.path.realpath(state))).hexdigest()[:16]
    return user_folder(environ) / "stacks" / f"{name}.json"
