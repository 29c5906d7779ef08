"""What a trainer declares and calls: the library's one object."""

from __future__ import annotations

from typing import Any


class Watch:
    """A trainer's exporter (skeleton: the collectors of ``collectors/`` are wired in here)."""

    root: Any
