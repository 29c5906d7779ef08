"""Checks of declared names and numbers, limits to the number of names, and the name of this machine."""

from __future__ import annotations

import hashlib
import math
import re
from functools import cache
from pathlib import Path

import psutil

OTHER = "other"
MAX_NAMES = 64  # series of one sort

_NAME = re.compile(r"[\w.:/\-\[\] ]{1,100}")


def checked_name(kind: str, name: object) -> str:
    """Return `name`.

    Raises:
        ValueError: it is no text of 1 to 100 letters, digits, spaces and `_ . : / - [ ]`.

    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name != name.strip():
        raise ValueError(
            f"{kind} name {name!r} is not allowed: "
            "use 1 to 100 letters, digits, inner spaces and _ . : / - [ ]"
        )
    return name


def is_whole(value: object, least: int = 1, below: float = math.inf) -> bool:
    """Whether a value is a whole number in this range, and not True or False."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < below


@cache
def boot() -> str:
    """Return the identity of this machine's kernel since its start."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return str(int(psutil.boot_time()))


@cache
def machine() -> str:
    """Return a short name for this machine: the same in each of its containers, new with each boot."""
    return hashlib.sha256(boot().encode()).hexdigest()[:12]
