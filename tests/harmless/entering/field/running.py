"""One program, from its start until nothing of it is left."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from tests.harmless.entering.field.cases import Case
from tests.support.repository import REPOSITORY

if TYPE_CHECKING:
    from typing_extensions import Self

_START_SECONDS = 180.0  # imports, on a busy machine
_END_SECONDS = 60.0  # longer than a program waits by itself
_ABORT_SECONDS = 5.0
_LONGEST = 6000
_CRASH = b"Fatal Python error"  # what `faulthandler` says, also in a log


class Running:
    """A program in a folder of its own, which a `with` block ends and removes.

    Args:
        python: the interpreter.
        case: what it runs.

    """

    def __init__(self, python: str, case: Case) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="field-", ignore_cleanup_errors=True)
        self._log = Path(self._folder.name) / "stderr.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [python, *case.arguments()],
                cwd=self._folder.name,
                env=_environment(self._folder.name),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._family: dict[psutil.Process, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._send(signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._folder.cleanup()

    def processes(self) -> dict[str, int]:
        """The processes that wait, by what they are; none if the program ended before."""
        assert self._process.stdout is not None
        until = time.monotonic() + _START_SECONDS
        while select.select([self._process.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
            line = self._process.stdout.readline()
            if line.startswith(b"{"):
                root = psutil.Process(self._process.pid)
                self._family = {one: _name(one) for one in [root, *root.children(recursive=True)]}
                found: dict[str, int] = json.loads(line)
                return found
            if not line:
                break
        return {}

    def gone(self) -> dict[int, str]:
        """The processes that ended meanwhile, by their numbers, with the ends of their command lines."""
        return {one.pid: name for one, name in self._family.items() if not _is_alive(one)}

    def end(self) -> str:
        """Tell the program that the visits are over; what went wrong since it began, or nothing."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._send(signal.SIGABRT)  # each writes where it is
            psutil.wait_procs(list(self._family), timeout=_ABORT_SECONDS)
            return "does not end"
        left = psutil.wait_procs(list(self._family), timeout=_END_SECONDS)[1]
        if code:
            return f"exit code {code}"
        if crashed := [path.name for path in self._files() if _CRASH in path.read_bytes()]:
            return f"a crash in {', '.join(crashed)}"
        return f"{len(left)} processes do not end" if left else ""

    def said(self) -> str:
        """What it wrote on its standard error, from a crash on, else the last of it."""
        text = self._log.read_text(errors="replace")
        at = text.find(_CRASH.decode())
        return text[at : at + _LONGEST] if at >= 0 else text[-_LONGEST:]

    def _send(self, number: int) -> None:
        for one in self._family:
            with suppress(psutil.Error):
                one.send_signal(number)

    def _files(self) -> list[Path]:
        return [path for path in Path(self._folder.name).rglob("*") if path.is_file()]


def _name(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())[-60:]
    return "ended at once"


def _is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _environment(folder: str) -> dict[str, str]:
    """What writes into a home writes into the folder; a process that crashes says so."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HEAPWATCH_")}
    return kept | {
        "HOME": folder,
        "PYTHONPATH": str(REPOSITORY),
        "PYTHONFAULTHANDLER": "1",
        "OMP_NUM_THREADS": "1",
        "WANDB_SILENT": "true",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
