"""A folder that this project made: the mark without which it is not removed, and locks in it.

Standard library only.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heapwatch.runtime.own_files import make_private, open_own
from heapwatch.stacks import MARK
from heapwatch_stack.errors import StackError

TEXT = "heapwatch made this folder: `make clean` and `heapwatch clean` remove it.\n"


def make(folder: Path) -> None:
    """Create the state folder (mode 0700) with the mark; an existing empty folder is used.

    Raises:
        StackError: the folder holds other files and carries no mark.
        OSError: it cannot be created.

    """
    make_private(folder)
    # The mark is always the first file, also of another process that makes this folder now.
    if any(folder.iterdir()) and not carried_by(folder):
        raise StackError(
            f"{folder} holds files that heapwatch did not make: set HEAPWATCH_STATE to a folder of its own"
        )
    with os.fdopen(open_own(folder / MARK, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as mark:
        mark.write(TEXT)


def carried_by(folder: Path) -> bool:
    """Whether the folder carries the mark; False where there is no folder."""
    return (folder / MARK).is_file()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file, made if it is missing.

    Raises:
        StackError: another process holds it.
        OSError: it is not a file of this user.

    """
    with os.fdopen(open_own(path, os.O_RDWR | os.O_CREAT), "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StackError(f"another heapwatch or make holds {path}: wait for it") from None
        yield
