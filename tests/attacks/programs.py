"""Real programs that attacks are aimed at: trainers with the whole library, and the command line."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from tests.alerting.harness import TOKEN, wait_for
from tests.support.http_server import Request, Server, serving

TRAINING = """
    import os, sys, time
    import heapwatch

    watch = heapwatch.start("attacked", port=int(sys.argv[1]), host=sys.argv[2], interval=0.05, budget=0.5)
    {declarations}
    print(watch.port, flush=True)
    while True:
        watch.step()
        time.sleep(0.002)
"""


def own_places(folder: Path) -> dict[str, str]:
    """The environment of a program that finds no other stack, and registers in the folder."""
    own = {"HEAPWATCH_TARGETS_DIR": str(folder / "targets"), "XDG_STATE_HOME": str(folder)}
    return {**os.environ, **own, "HEAPWATCH_TOKEN": TOKEN}


class RealTrainer:
    """A trainer of the library in a process; `declarations` is code that has `watch`."""

    def __init__(
        self, folder: Path, declarations: str = "", port: int = 0, host: str = "127.0.0.1", **variables: str
    ) -> None:
        script = folder / "trainer.py"
        indented = textwrap.indent(textwrap.dedent(declarations).strip(), "    ")
        script.write_text(textwrap.dedent(TRAINING.replace("    {declarations}", indented)))
        self.log = folder / "trainer.log"
        environment = own_places(folder) | variables
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, script, str(port), host], stdout=subprocess.PIPE, stderr=log, env=environment
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()
        self.port = int(line)
        self.url = f"http://127.0.0.1:{self.port}"

    def cleanup(self, document: Mapping[str, Any] | None = None, **headers: str) -> httpx.Response:
        given = {"Authorization": f"Bearer {TOKEN}", **headers}
        return httpx.post(f"{self.url}/force_cleanup", json=document or {}, headers=given, timeout=15)

    def value(self, series: str) -> float:
        for line in httpx.get(f"{self.url}/metrics", timeout=15).text.splitlines():
            name, _, value = line.rpartition(" ")
            if name == series:
                return float(value)
        raise KeyError(series)

    def steps(self) -> float:
        return self.value('trainer_progress_total{unit="step"}')

    def makes_progress(self) -> bool:
        """Whether training makes progress."""
        before = self.steps()
        return bool(wait_for(lambda: self.steps() > before, "training goes on"))

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


@contextmanager
def real_trainer(folder: Path, declarations: str = "", **options: Any) -> Iterator[RealTrainer]:
    trainer = RealTrainer(folder, declarations, **options)
    try:
        yield trainer
    finally:
        trainer.stop()


@contextmanager
def heapwatch(folder: Path, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """The command line, its output in `folder/output`."""
    command = [sys.executable, "-m", "heapwatch", *map(str, arguments)]
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=own_places(folder))
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def printed(folder: Path, *arguments: object) -> tuple[int, str]:
    """The exit code of the command line, and what it says until it ends."""
    with heapwatch(folder, *arguments) as process:
        code = process.wait(60)
    return code, (folder / "output").read_text(errors="replace")


OVER_LIMIT = b"""trainer_process_resident_memory_bytes{role="trainer"} 9e9
trainer_limit{resource="memory",component="trainer",severity="critical"} 1e9
"""


@contextmanager
def recording_trainer(port: int = 0, answer: Mapping[str, Any] | None = None) -> Iterator[Server]:
    """Answers as a trainer over its limit, on the port of one that is gone."""

    def respond(request: Request) -> tuple[int, bytes]:
        if request.method == "GET":
            return 200, OVER_LIMIT
        request_id = json.loads(request.body).get("request_id", "")
        return 200, json.dumps({"status": "done", "request_id": request_id, **(answer or {})}).encode()

    with serving(respond, port=port) as server:
        yield server


def asked(server: Server) -> list[Request]:
    """What was posted to it."""
    return [request for request in server.requests if request.method == "POST"]


def raw(port: int, data: bytes, timeout: float = 15) -> bytes:
    """What comes back on one connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        connection.sendall(data)
        chunks = []
        with suppress(OSError):
            while chunk := connection.recv(65536):
                chunks.append(chunk)
        return b"".join(chunks)
