"""Programs that attacks are aimed at: trainers with the whole library, and what takes a trainer's place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.alerting.harness import TOKEN, wait_for
from tests.support.http_client import CLIENT
from tests.support.http_server import Request, Server, serving

TRAINING = """
    import os, sys, time
    import heapwatch

    watch = heapwatch.start("attacked", port=int(sys.argv[1]), interval=0.05, budget=0.5)
    {declarations}
    print(watch.port, flush=True)
    while True:
        watch.step()
        time.sleep(0.002)
"""


def own_places(folder: Path) -> dict[str, str]:
    """The environment of a program that finds no other stack, and has its targets in the folder."""
    own = {"HEAPWATCH_TARGETS_DIR": str(folder / "targets"), "XDG_STATE_HOME": str(folder)}
    return {**os.environ, **own, "HEAPWATCH_TOKEN": TOKEN}


class RealTrainer:
    """A trainer of the library in a process; `declarations` is code that has `watch`."""

    def __init__(self, folder: Path, declarations: str = "", port: int = 0) -> None:
        script = folder / "trainer.py"
        indented = textwrap.indent(textwrap.dedent(declarations).strip(), "    ")
        script.write_text(textwrap.dedent(TRAINING.replace("    {declarations}", indented)))
        log = folder / "trainer.log"
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, script, str(port)],
                stdout=subprocess.PIPE,
                stderr=output,
                env=own_places(folder),
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, log.read_text()
        self.port = int(line)
        self.url = f"http://127.0.0.1:{self.port}"

    def cleanup(self, document: Mapping[str, Any] | None = None, **headers: str) -> httpx.Response:
        given = {"Authorization": f"Bearer {TOKEN}", **headers}
        return CLIENT.post(f"{self.url}/force_cleanup", json=document or {}, headers=given, timeout=30)

    def value(self, series: str) -> float:
        for line in CLIENT.get(f"{self.url}/metrics", timeout=30).text.splitlines():
            name, _, value = line.rpartition(" ")
            if name == series:
                return float(value)
        raise KeyError(series)

    def makes_progress(self) -> bool:
        """Whether training goes on."""
        before = self.value('trainer_progress_total{unit="step"}')
        return bool(wait_for(lambda: self.value('trainer_progress_total{unit="step"}') > before, "a step"))

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


@contextmanager
def real_trainer(folder: Path, declarations: str = "", **options: Any) -> Iterator[RealTrainer]:
    folder.mkdir(exist_ok=True)
    trainer = RealTrainer(folder, declarations, **options)
    try:
        yield trainer
    finally:
        trainer.stop()


def printed(folder: Path, *arguments: object) -> str:
    """What the command line says until it ends."""
    done = subprocess.run(
        [sys.executable, "-m", "heapwatch", *map(str, arguments)],
        env=own_places(folder),
        capture_output=True,
        timeout=120,
        check=False,
    )
    return (done.stdout + done.stderr).decode(errors="replace")


OVER_LIMIT = b"""trainer_process_resident_memory_bytes{role="trainer"} 9e9
trainer_limit{resource="memory",component="trainer",severity="critical"} 1e9
"""


@contextmanager
def impostor(port: int) -> Iterator[Server]:
    """Answers as a trainer over its limit, on the port of one that is gone."""

    def respond(request: Request) -> tuple[int, bytes]:
        if request.method == "GET":
            return 200, OVER_LIMIT
        request_id = json.loads(request.body).get("request_id", "")
        return 200, json.dumps({"status": "done", "request_id": request_id}).encode()

    with serving(respond, port=port) as server:
        yield server


def asked(server: Server) -> list[Request]:
    """What was posted to it."""
    return [request for request in server.requests if request.method == "POST"]
