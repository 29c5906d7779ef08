"""One of the examples as a process, from outside: what its author sees of it."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from examples.common.leaks import leak_file, write
from heapwatch.collectors.readings import Readings
from heapwatch.recording.file import read_recording
from heapwatch.report.findings import Report, analyse
from tests.support.repository import REPOSITORY

TOKEN = "correct-horse-battery-staple"
SECONDS = float(os.environ.get("DOCUMENT_SECONDS", "600"))  # that anything may take on a busy machine
START_SECONDS = 900.0  # importing torch on a busy machine
ANSWER_SECONDS = 120.0


class NotStarted(Exception):
    """An example did not begin to serve; the message has the end of its log."""


class Example:
    """A running example with its leaks off.

    Args:
        name: of the example.
        folder: for its switches, its log and its record.
        options: further arguments of its command line.

    """

    def __init__(self, name: str, folder: Path, *options: str) -> None:
        self.name = name
        self.folder = folder
        self.record = folder / "run.jsonl.gz"
        self._log = folder / "log"
        self.environment = _environment(folder)
        arguments = ["--port=0", "--interval=0.5", f"--record={self.record}", *options]
        with self._log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", f"examples.{name}", *arguments],
                env=self.environment,
                cwd=REPOSITORY,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            self.until(lambda: self._address() is not None, START_SECONDS)
        except AssertionError as error:
            self.stop()
            raise NotStarted(str(error)) from error

    @property
    def url(self) -> str:
        """Where it serves."""
        address = self._address()
        assert address is not None
        return address

    def log(self) -> str:
        """What it has printed so far."""
        return self._log.read_text(errors="replace")

    def metrics(self) -> str:
        """Its exposition, as text."""
        return self._get("/metrics")

    def readings(self) -> Readings:
        """Its exposition, read."""
        return Readings(text_string_to_metric_families(self.metrics()))

    def value(self, name: str, **labels: str) -> float:
        """One sample; not a number while it is not there."""
        found = self.readings().value(name, **labels)
        return float("nan") if found is None else found

    def status(self) -> dict[str, Any]:
        """`/performance_status`."""
        document: dict[str, Any] = json.loads(self._get("/performance_status"))
        return document

    def explain(self) -> dict[str, Any]:
        """`/explain`."""
        document: dict[str, Any] = json.loads(self._get("/explain"))
        return document

    def report(self) -> Report:
        """The report of its record so far."""
        return analyse(read_recording(self.record))

    @contextmanager
    def leaking(self, **rates: float) -> Iterator[None]:
        """Have it leak, units a minute, for as long as the context lasts, and wait until it has stopped."""
        switches, off = leak_file(self.name, self.folder), "leaks on, units per minute: none"
        write(switches, rates)
        try:
            yield
        finally:
            before = self.log().count(off)
            write(switches, {})
        if self.process.poll() is None:
            self.until(lambda: self.log().count(off) > before)

    def force_cleanup(self, action: str = "emergency", **target: str) -> dict[str, Any]:
        """`POST /force_cleanup`, of the `resource` and `component` where they are given."""
        request = urllib.request.Request(
            f"{self.url}/force_cleanup",
            json.dumps({"action": action, "timeout_seconds": 30, **target}).encode(),
            {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"},
        )
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            document: dict[str, Any] = json.load(answer)
        return document

    def run(self, *command: str, within: float = SECONDS) -> str:
        """The output of a command beside it, in its environment; the trainer's address is appended."""
        while True:
            done = subprocess.run(
                [*command, self.url.removeprefix("http://")],
                env=self.environment,
                cwd=REPOSITORY,
                capture_output=True,
                text=True,
                timeout=within,
                check=False,
            )
            said = done.stdout + done.stderr
            if "does not answer within" not in said:  # as on a busy machine
                return said

    def until(self, true: Callable[[], object], seconds: float = SECONDS) -> None:
        """Wait for it to become true; AssertionError with the end of its log when it does not."""
        deadline = time.monotonic() + seconds
        while not true():
            assert self.process.poll() is None, f"it ended:\n{self.log()[-2000:]}"
            assert time.monotonic() < deadline, f"not within {seconds:g} s:\n{self.log()[-2000:]}"
            time.sleep(0.3)

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        try:
            self.process.wait(timeout=ANSWER_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _address(self) -> str | None:
        found = re.search(r"metrics at (http://\S+)/metrics", self.log())
        return None if found is None else found[1]

    def _get(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=ANSWER_SECONDS) as answer:
            text: str = answer.read().decode()
        return text


@contextmanager
def finished(name: str, folder: Path, *options: str, steps: int = 800) -> Iterator[tuple[str, Path]]:
    """What an example says that runs to its end as fast as it goes, and its record."""
    record = folder / "run.jsonl.gz"
    arguments = ["--port=0", "--rate=0", f"--steps={steps}", f"--record={record}", *options]
    done = subprocess.run(
        [sys.executable, "-m", f"examples.{name}", *arguments],
        env=_environment(folder),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=True,
    )
    yield done.stdout, record


@contextmanager
def own_state() -> Iterator[None]:
    """Switches and targets in a folder of their own, for an example in this process."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEAPWATCH_STATE", folder)
        patch.setenv("HEAPWATCH_TARGETS_DIR", folder)
        yield


def _environment(folder: Path) -> dict[str, str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("HEAPWATCH_")}
    return clean | {
        "HEAPWATCH_STATE": str(folder),
        "HEAPWATCH_TARGETS_DIR": str(folder / "targets"),
        "HEAPWATCH_TOKEN": TOKEN,
        "OMP_NUM_THREADS": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",  # as in its environment
        "PYTHONUNBUFFERED": "1",
    }
