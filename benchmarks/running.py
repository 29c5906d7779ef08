"""Programs in a session of their own, which end with all that they started; scripts that run for a time."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import psutil

ROOT = Path(__file__).parents[1]
GRACE_SECONDS = 300.0  # after its time a tool has this long for its report
_POLL_SECONDS = 2.0
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Outcome:
    """What a run left: its output, how it ended (None: it was killed), and how long it took in seconds."""

    stdout: str
    stderr: str
    status: int | None
    seconds: float

    @property
    def last_words(self) -> str:
        """The last line that it wrote to its standard error, for a message."""
        return (self.stderr.strip().splitlines() or ["nothing was said"])[-1][:200]


@contextmanager
def started(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    *,
    patience: float = 0.0,
    **options: Any,
) -> Iterator[subprocess.Popen[Any]]:
    """A program and all that it starts, which end with the context.

    Args:
        command: what to run.
        environment: added to this process' own, unless `options` have an `env`.
        patience: seconds between SIGTERM and SIGKILL; without it, SIGKILL comes at once.
        options: of `subprocess.Popen`.

    """
    options.setdefault("env", {**os.environ, **(environment or {})})
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)
    try:
        yield process
    finally:
        family: list[psutil.Process] = []
        with suppress(psutil.Error):  # torchrun gives each worker a session of its own
            parent = psutil.Process(process.pid)
            family = [parent, *parent.children(recursive=True)]
        for one in family if patience else ():
            with suppress(psutil.Error):
                one.terminate()
        _, left = psutil.wait_procs(family, timeout=patience) if patience else ([], family)
        for one in left:
            with suppress(psutil.Error):
                one.kill()
        with suppress(ProcessLookupError):  # what its children left behind
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def apart(function: Callable[..., _Result], *arguments: object) -> _Result:
    """What a function of a module returns in a new process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def with_root(environment: Mapping[str, str]) -> dict[str, str]:
    """With this package importable, whatever the working directory."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    return {**environment, "PYTHONPATH": path}


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
    poll: Callable[[int, float], None] | None = None,
) -> Outcome:
    """Run `command` in `folder`.

    Args:
        command: what to run; it ends by itself after `seconds` unless `interrupt`.
        folder: working directory; the output goes to stdout and stderr in it.
        seconds: how long the script trains.
        grace: seconds that it may take beyond its time before it is killed.
        environment: added to this process' own.
        interrupt: send SIGINT after `seconds`, as a person would.
        poll: called every two seconds with the process' id and the seconds since it was started.

    """
    folder.mkdir(parents=True, exist_ok=True)
    # One thread for numerics: several cases share the machine.
    own = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **(environment or {})}
    status, interrupted = None, False
    with (folder / "stdout").open("w") as stdout, (folder / "stderr").open("w") as stderr:
        began = time.monotonic()
        with started(command, own, cwd=folder, stdout=stdout, stderr=stderr) as process:
            while (elapsed := time.monotonic() - began) < seconds + grace:
                with suppress(subprocess.TimeoutExpired):
                    status = process.wait(_POLL_SECONDS)
                    break
                if poll and elapsed < seconds:
                    poll(process.pid, elapsed)
                if interrupt and not interrupted and elapsed >= seconds:
                    process.send_signal(signal.SIGINT)
                    interrupted = True
    took = time.monotonic() - began
    said, complained = ((folder / name).read_text(errors="replace") for name in ("stdout", "stderr"))
    return Outcome(said, complained, status, took)
