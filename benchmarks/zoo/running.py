"""Runs a script under a tool, for a time, and ends all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# After its time a tool has this long for its report.
GRACE_SECONDS = 300.0
_LOOK_EVERY = 2.0


@dataclass(frozen=True)
class Outcome:
    """What a run left: its output, how it ended, and how long it took in seconds."""

    stdout: str
    stderr: str
    status: int | None
    seconds: float

    @property
    def last_words(self) -> str:
        """The last line that it wrote to its standard error, for a message."""
        return (self.stderr.strip().splitlines() or ["nothing was said"])[-1][:200]


def allow_interrupts() -> None:
    """Let SIGINT end what this process starts; a shell's background jobs ignore it. Main thread only."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def run(
    command: Sequence[str],
    folder: Path,
    seconds: float,
    *,
    environment: Mapping[str, str] | None = None,
    grace: float = GRACE_SECONDS,
    interrupt: bool = False,
    look: Callable[[int, float], None] | None = None,
) -> Outcome:
    """Run `command` in `folder` and in a process group of its own.

    Args:
        command: what to run; it ends by itself after `seconds` unless `interrupt`.
        folder: working directory; the output goes to stdout and stderr in it.
        seconds: how long the script trains.
        grace: seconds that it may take beyond its time before it is killed.
        environment: added to this process' own.
        interrupt: send SIGINT after `seconds`, as a person would.
        look: called every two seconds with the process' id and the seconds since it was started.

    """
    folder.mkdir(parents=True, exist_ok=True)
    # One thread for numerics: several cases share the machine.
    merged = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **(environment or {})}
    with (folder / "stdout").open("w") as stdout, (folder / "stderr").open("w") as stderr:
        began = time.monotonic()
        process = subprocess.Popen(
            command, cwd=folder, env=merged, stdout=stdout, stderr=stderr, start_new_session=True
        )
        try:
            status = _wait(process, began, seconds, grace, interrupt, look)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    took = time.monotonic() - began
    said, complained = ((folder / name).read_text(errors="replace") for name in ("stdout", "stderr"))
    return Outcome(said, complained, status, took)


def _wait(
    process: subprocess.Popen[bytes],
    began: float,
    seconds: float,
    grace: float,
    interrupt: bool,
    look: Callable[[int, float], None] | None,
) -> int | None:
    """Wait for the end; None where the process had to be killed."""
    interrupted = False
    while (elapsed := time.monotonic() - began) < seconds + grace:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_LOOK_EVERY)
        if look and elapsed < seconds:
            look(process.pid, elapsed)
        if interrupt and not interrupted and elapsed >= seconds:
            process.send_signal(signal.SIGINT)
            interrupted = True
    return None
