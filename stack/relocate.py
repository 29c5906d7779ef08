"""Lets Debian's Alertmanager run from where it was unpacked.

Debian's build opens its built-in templates below /usr/share/prometheus, has no flag for another place, and
only root can put them there. In the copy made here that path is replaced by one of the same length that goes
through an open descriptor, which a two-line wrapper provides: it works from any folder and for any user.
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
    """Write `wrapper`: `program` with `share`, its own usr/share/prometheus, in place of the system's."""
    relocated = program.with_name(program.name + ".relocated")
    _write(relocated, program.read_bytes().replace(BUILT_IN, THROUGH_DESCRIPTOR))
    script = (
        f'#!/bin/sh\nexec {DESCRIPTOR}<{shlex.quote(str(share))} && exec {shlex.quote(str(relocated))} "$@"\n'
    )
    _write(wrapper, script.encode())


def _write(file: Path, content: bytes) -> None:
    """Put an executable in place at once and whole, even where the old one is running."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    fresh.write_bytes(content)
    fresh.chmod(0o755)
    fresh.replace(file)
