"""A program under `heapwatch run`, and what `/explain` says of it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from heapwatch.errors import Unreachable
from heapwatch.http.client import get_json

PROGRAMS = Path(__file__).parent / "programs"
_AGAIN_SECONDS = 2.0
Document = dict[str, Any]


@contextmanager
def started(*command: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program and all its children, which end with the context."""
    process = subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        # torchrun gives each worker a session of its own.
        parent = psutil.Process(process.pid)
        for one in (*parent.children(recursive=True), parent):
            with suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait()


class Watched:
    """A program under `heapwatch run`, until the context ends.

    Attributes:
        verdicts: all that were said so far.

    """

    def __init__(self, stack: ExitStack, program: str, *arguments: str, **environment: str) -> None:
        self.verdicts: set[str] = set()
        self._url = f"http://127.0.0.1:{_free_port()}/explain"
        port = self._url.split(":")[2].split("/")[0]
        command = [sys.executable, "-m", "heapwatch", "run", "--quiet", "--port", port]
        script = str(PROGRAMS / f"{program}.py")
        self._process = stack.enter_context(started(*command, script, *arguments, **environment))
        self._began = time.monotonic()

    def look(self) -> Document:
        """The explanation at the moment; an empty one until the program answers.

        Raises:
            RuntimeError: the program has ended.

        """
        if self._process.poll() is not None:
            raise RuntimeError(f"the program ended with {self._process.returncode}")
        try:
            document: Document = get_json(self._url)
        except Unreachable:
            return {"verdict": "", "findings": []}
        self.verdicts.add(document["verdict"])
        return document

    def found(self, wanted: Callable[[Document], bool], seconds: float) -> tuple[Document | None, float]:
        """The first finding that is wanted, and after how many seconds it was there."""
        while (passed := time.monotonic() - self._began) < seconds:
            for finding in self.look()["findings"]:
                if wanted(finding):
                    return finding, passed
            time.sleep(_AGAIN_SECONDS)
        return None, seconds


def line_of(program: str, text: str) -> int:
    """The number of the line that holds `text`."""
    lines = (PROGRAMS / f"{program}.py").read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def is_at(finding: Mapping[str, Any], program: str, text: str) -> bool:
    """Whether a finding gives the line of the program that holds `text`."""
    site = finding.get("site") or {}
    return Path(site.get("file", "")).stem == program and site.get("line") == line_of(program, text)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
