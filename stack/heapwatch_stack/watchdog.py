"""A process beside the services: it removes the target files of trainers that were killed.

It records these trainers as lost, with the cause. Other programs may soon use their ports.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from heapwatch.discovery import sweep
from heapwatch.measure.process.kernel_kills import KernelKills
from heapwatch.text.terminal import say
from heapwatch_stack.settings import Settings

SWEEP_SECONDS = 5.0


def main() -> None:
    """Look every few seconds, until the supervisor ends this process."""
    targets, kills = Settings.from_environment().targets, KernelKills()
    while True:
        remove_dead(targets, kills)
        time.sleep(SWEEP_SECONDS)


def remove_dead(targets: Path, kills: KernelKills) -> None:
    """Remove the targets of trainers that have ended, and say so."""
    with suppress(OSError):
        for path in sweep(targets, kills):
            say(f"{path.stem} has ended without removing its target: removed")


if __name__ == "__main__":
    main()
