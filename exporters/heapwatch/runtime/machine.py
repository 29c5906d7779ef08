"""Which machine this is: the containers of one machine share it, as they share its memory."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import psutil


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
