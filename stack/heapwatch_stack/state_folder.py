"""A folder that this project made: the mark without which it is not removed, and locks in it.

Standard library only.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from heapwatch.runtime.own_files import make_private, open_own
from heapwatch.stacks import MARK
from heapwatch_stack.errors import StackError

NAME = MARK
TEXT = "heapwatch made this folder: `make clean` and `heapwatch clean` remove what is theirs in it.\n"
# Identify a folder of an earlier version, which has no mark.
OWN_FOLDER = ".heapwatch"
EVIDENCE = ("etc/supervisord.conf", "secrets/token")
# Names that the stack, make and the checks in .ci write into a state folder.
OWN = (
    "bin", "bootstrap.lock", "cases-plugins", "conda", "data", "dist", "docs", "etc", "field", "kubernetes",
    "light", "lock", "logs", "packages", "packages.lock", "pictures", "release", "run", "secrets", "site",
    "targets", "third-party", "third-party-venv", "venv",
)  # fmt: skip
LOCK_SECONDS = 1800.0  # a download over a slow line
_POLL_SECONDS = 0.1


def make(folder: Path) -> None:
    """Create the state folder (mode 0700) with the mark; an existing empty folder is used.

    Raises:
        FileExistsError: the folder holds other files and carries no mark.
        OSError: it cannot be created.

    """
    make_private(folder)
    if carried_by(folder):
        return
    earlier = folder.name == OWN_FOLDER or all((folder / name).is_file() for name in EVIDENCE)
    # The mark is always the first file: if another process is creating this folder, it is there by now.
    if not earlier and any(folder.iterdir()) and not carried_by(folder):
        raise FileExistsError(f"{folder} holds files that heapwatch did not make")
    with os.fdopen(open_own(folder / NAME, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as mark:
        mark.write(TEXT)


def carried_by(folder: Path) -> bool:
    """Whether the folder carries the mark; False where there is no folder."""
    return (folder / NAME).is_file()


def remove(folder: Path) -> list[str]:
    """Remove this project's files from a marked folder, and the folder if it is then empty.

    After an interruption the marks are still there, so the next call continues.

    Returns:
        The names of the files that are left, because heapwatch did not write them.

    Raises:
        OSError: a file cannot be removed.

    """
    for name in OWN:
        _remove(folder / name)
    left = sorted(path.name for path in folder.iterdir() if path.name != NAME)
    if not left:
        discard(folder)
    return left


def discard(folder: Path) -> None:
    """Remove a folder of this project with all that is in it: its files, its folders, at last its mark.

    Raises:
        OSError: there is no such folder, or a file in it cannot be removed.

    """
    inside = [path for path in folder.iterdir() if path.name != NAME]
    for path in sorted(inside, key=_is_folder):
        _remove(path)
    (folder / NAME).unlink(missing_ok=True)
    folder.rmdir()


def _remove(path: Path) -> None:
    if not _is_folder(path):
        path.unlink(missing_ok=True)
    elif carried_by(path):
        discard(path)
    else:
        shutil.rmtree(path)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


@contextmanager
def locked(
    path: Path,
    seconds: float = LOCK_SECONDS,
    waits: Callable[[], None] = lambda: None,
    held: str = "process {holder} has held {path} for {seconds:.0f} s: end it",
) -> Iterator[None]:
    """Hold a lock file, which names this process meanwhile, once no other process does.

    Args:
        path: the file, made if it is missing; it stays.
        seconds: for how long it is waited.
        waits: called once if it is waited.
        held: the error after that; it may name the `path`, the `seconds` and the `holder`, a process id.

    Raises:
        StackError: another process has held it for `seconds`.
        OSError: it is not a file of this user.

    """
    until = time.monotonic() + seconds
    reported = False
    with os.fdopen(open_own(path, os.O_RDWR | os.O_CREAT), "r+b", buffering=0) as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    holder = file.read(20).decode(errors="replace").strip() or "?"
                    raise StackError(held.format(path=path, seconds=seconds, holder=holder)) from None
            if not reported:
                waits()
                reported = True
            time.sleep(_POLL_SECONDS)
        with suppress(OSError):  # the lock holds without the name, as on a full disk
            file.truncate(0)
            file.write(str(os.getpid()).encode())
        yield
