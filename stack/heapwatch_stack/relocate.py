"""Lets Debian's Alertmanager run from the folder into which it was unpacked.

Debian's build opens its templates below /usr/share/prometheus. It has no option for another folder, and only
root can write there. So the path is replaced in a copy of the program by a path of the same length below
/proc/self/fd, and a two-line wrapper opens the folder with that descriptor. This works in any folder and for
any user.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

BUILT_IN = b"/usr/share/prometheus/alertmanager"
DESCRIPTOR = 9
THROUGH_DESCRIPTOR = (
    f"/proc/self/fd/{DESCRIPTOR}".encode().ljust(len(BUILT_IN) - len(b"alertmanager"), b"/") + b"alertmanager"
)


def relocate(program: Path, share: Path, wrapper: Path) -> None:
    """Write `wrapper`, which runs `program` with `share` instead of /usr/share/prometheus."""
    relocated = program.with_name(program.name + ".relocated")
    _write(relocated, program.read_bytes().replace(BUILT_IN, THROUGH_DESCRIPTOR))
    script = (
        f'#!/bin/sh\nexec {DESCRIPTOR}<{shlex.quote(str(share))} && exec {shlex.quote(str(relocated))} "$@"\n'
    )
    _write(wrapper, script.encode())


def _write(file: Path, content: bytes) -> None:
    """Replace an executable atomically, even while the old one is running."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.chmod(0o755)
    fresh.replace(file)
