"""Processes that multiprocessing and joblib keep for themselves: children of a trainer, but no workers."""

from __future__ import annotations

_TRACKERS = ("from multiprocessing.resource_tracker import", "loky.backend.resource_tracker")
_FORKSERVER = "from multiprocessing.forkserver import"


def is_housekeeper(command: str, parent_command: str) -> bool:
    """Whether a process is a resource tracker, or the fork server itself.

    Args:
        command: the process's command line. A worker has that of the fork server it was forked from.
        parent_command: that of its parent.

    """
    if any(mark in command for mark in _TRACKERS):
        return True
    return _FORKSERVER in command and _FORKSERVER not in parent_command
