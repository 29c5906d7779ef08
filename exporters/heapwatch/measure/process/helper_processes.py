"""Helper processes of multiprocessing, joblib and this package: children of a trainer, but no workers."""

from __future__ import annotations

_TRACKERS = ("from multiprocessing.resource_tracker import", "loky.backend.resource_tracker")
VISITOR = "heapwatch.cli.main"  # of the command that explains a worker
_FORKSERVER = "from multiprocessing.forkserver import"


def is_housekeeper(command: str, parent_command: str) -> bool:
    """Whether a process is a resource tracker, the fork server itself, or a command of this package.

    Args:
        command: command line of the process. A worker has that of the fork server from which it was forked.
        parent_command: command line of its parent.

    """
    if any(mark in command for mark in (*_TRACKERS, f"from {VISITOR} import")):
        return True
    return _FORKSERVER in command and _FORKSERVER not in parent_command
