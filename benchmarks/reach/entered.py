"""Running processes that are entered, on every Python that is here, busy ones again and again."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.measure import Claim, Table
from benchmarks.running import started
from heapwatch.entering.entered_process import CannotEnter, EnteredProcess
from heapwatch.http.client import get_json
from heapwatch.text.numbers import size, size_change

PROGRAMS = Path(__file__).parent / "programs"
BUSY = ("numpy_arrays", "torch_training", "threads", "asyncio_tasks", "forked_workers")
SERVED: dict[str, Any] = {"name": "reach", "host": "127.0.0.1", "port": 0}
PATIENCE = 180.0
FIRST_ROUNDS, ROUNDS = 20, 40  # the allocator settles in the first ones
LEFT_SECONDS = 5.0  # for the thread that wrote the last answer to end


@contextmanager
def running(python: str, name: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    command = [python, *options, str(PROGRAMS / f"{name}.py")]
    output: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with started(command, **output) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


def serve(pid: int) -> str:
    with EnteredProcess(pid) as entered:
        return str(entered.ask("serve", **SERVED)["url"])


def leave(pid: int) -> None:
    with EnteredProcess(pid) as entered:
        entered.ask("leave")


def named(python: str) -> tuple[float, float, float, str]:
    """Seconds until the process serves, until its leak has a name, until the verdict, and the name."""
    with running(python, "leaking", "-I", "-S") as process:
        began = time.monotonic()
        url = serve(process.pid)
        served, name_at, name = time.monotonic() - began, 0.0, ""
        while time.monotonic() - began < PATIENCE:
            document = get_json(f"{url}explain")
            first = document["findings"][0] if document["findings"] else {}
            if not name and first.get("path") and first.get("site"):
                name_at = time.monotonic() - began
                name = f"`{first['path']}`, line {first['site']['line']}"
            if document["verdict"] == "leak":
                return served, name_at, time.monotonic() - began, name
            time.sleep(0.2)
    return served, name_at, float("nan"), name


def left(python: str) -> tuple[float, float, int, int]:
    """Bytes that the first round keeps, bytes a further one, and the threads and sockets that stay."""
    with running(python, "steady", "-I", "-S") as process:
        inside = psutil.Process(process.pid)
        before = inside.memory_info().rss
        levels = []
        for _ in range(ROUNDS):
            serve(process.pid)
            leave(process.pid)
            levels.append(inside.memory_info().rss)
        end = time.monotonic() + LEFT_SECONDS
        while inside.num_threads() > 1 and time.monotonic() < end:
            time.sleep(0.01)
        further = (levels[-1] - levels[FIRST_ROUNDS - 1]) / (ROUNDS - FIRST_ROUNDS)
        return levels[0] - before, further, inside.num_threads() - 1, len(inside.net_connections())


def rounds(python: str, name: str, seconds: float) -> tuple[int, str]:
    """Rounds of entering and leaving a busy program, and what became of it."""
    with running(python, name) as process:
        end, done = time.monotonic() + seconds, 0
        while time.monotonic() < end and process.poll() is None:
            try:
                serve(process.pid)
                time.sleep(random.random() * 0.1)
                leave(process.pid)
            except CannotEnter as error:
                return done, f"{error}"
            done += 1
        time.sleep(0.5)
        if process.poll() is None:
            return done, ""
        return done, f"ended: {(process.communicate(timeout=10)[0] or '').strip()[-200:]}"


def pythons() -> list[str]:
    """Of this interpreter, and of those on PATH of the other versions that can be entered."""
    found = [sys.executable]
    for minor in range(10, 15):
        program = f"python3.{minor}"
        command = [program, "-c", "import sys; print(sys.executable)"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        except OSError:
            continue
        if done.returncode == 0 and minor != sys.version_info[1]:
            found.append(done.stdout.strip())
    return found


def version(python: str) -> str:
    command = [python, "-c", "import platform; print(platform.python_version())"]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()


def table(seconds: float) -> tuple[list[Table], list[Claim]]:
    """A leaking process on every Python, and busy programs, each for so many seconds."""
    attached = Table(
        f"A leaking process without any package; the command runs on {version(sys.executable)}",
        "Python | serves after | leak named after | verdict after | name | kept by the first round"
        " | by a further one | threads, sockets left",
    )
    clean = True
    for python in pythons():
        served, name_at, verdict_at, name = named(python)
        first, further, threads, sockets = left(python)
        clean = clean and not threads and not sockets and bool(name)
        attached.measured(
            *(version(python), f"{served:.2f} s", f"{name_at:.0f} s", f"{verdict_at:.0f} s", name),
            *(size(first), size_change(further), f"{threads}, {sockets}"),
        )
    busy = Table(
        f"Entered and left for {seconds:.0f} s each, while it works and checks its own results",
        "program | rounds | harmed",
    )
    harmed = 0
    for name in BUSY:
        done, harm = rounds(sys.executable, name, seconds)
        harmed += bool(harm)
        busy.measured(name, str(done), harm or "no")
    total = sum(int(row[1]) for row in busy.rows)
    claims = [
        Claim(
            "every process is entered, its leak is named, and no thread and no socket stays",
            str(clean),
            clean,
        ),
        Claim("no busy program is harmed", f"{total} rounds, {harmed} harmed", not harmed),
    ]
    return [attached, busy], claims
