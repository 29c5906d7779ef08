"""Helper processes of multiprocessing and joblib: children of a trainer, but no workers."""

from __future__ import annotations

_TRACKERS = ("from multiprocessing.resource_tracker import", "loky.backend.resource_tracker")
_FORKSERVER = "from multiprocessing.forkserver import"


def is_housekeeper(command: str, parent_command: str) -> bool:
    """Whether a process is a resource tracker, or the fork server itself.

    Args:
        command: command line of the process. A worker has that of the fork server from which it was forked.
        parent_command: command line of its parent.

    """
    if any(mark in command for mark in _TRACKERS):
        return True
    return _FORKSERVER in command and _FORKSERVER not in parent_command
