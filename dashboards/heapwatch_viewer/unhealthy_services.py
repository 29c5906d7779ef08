"""The unhealthy services, from a file of the stack's supervision, which needs no service for it."""

import os
from collections.abc import Mapping
from pathlib import Path

from heapwatch.runtime.own_files import read_text
from heapwatch.runtime.plain_text import plain

# In the state folder: a line for each service, written by the supervision.
UNHEALTHY = Path("run") / "unhealthy"
_MOST_CHARACTERS = 500


def unhealthy_services(environment: Mapping[str, str] = os.environ) -> str:
    """One line for the pages; empty if all services are healthy or the stack is not supervised."""
    try:
        lines = read_text(Path(environment["HEAPWATCH_STATE"]) / UNHEALTHY).splitlines()
    except (KeyError, OSError):
        return ""
    said = plain("; ".join(lines), _MOST_CHARACTERS)
    return f"{said}. Alerts may be lost: heapwatch status" if said else ""
