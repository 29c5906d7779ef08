"""Runs one trainer beside the stack until it ends, or until its leak was reported and named."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import httpx
import psutil

from benchmarks.running import started
from benchmarks.third_party.catalog import LEAK_MINUTES, Trainer
from benchmarks.third_party.observation import Observation, ObservedAlert
from benchmarks.third_party.stack import Stack

OBSERVER = Path(__file__).with_name("observer")
POLL_SECONDS = 5.0
READY_SECONDS = 420.0  # a busy machine takes minutes to import a framework
END_SECONDS = 240.0
OVERRAN = 124  # as timeout(1) has it
AFTER_SECONDS = 100.0  # how long a trainer that ended may not be reported as down
interrupted = threading.Event()  # set: every run ends at once
_TRACEBACK_END = re.compile(
    r"^(?:\[\w+\]: *|.*\) )?([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Taken)\b.*)$"
)


@dataclass
class Run:
    """One trainer's process and what has been seen of it."""

    trainer: Trainer
    stack: Stack
    seen: Observation
    folder: Path
    process: subprocess.Popen[bytes]
    began: float
    started: datetime

    @property
    def minute(self) -> float:
        """Minutes since its endpoint first answered."""
        assert self.seen.ready is not None
        return (time.monotonic() - self.began - self.seen.ready) / 60


def run(
    trainer: Trainer, stack: Stack, results: Path, minutes: float | None, *, leaking: bool
) -> Observation:
    """Run a trainer for `minutes`; by default ten, and a leaking one until a minute past its deadline.

    Args:
        trainer: the trainer.
        stack: a running stack.
        results: a folder of its name is made in it, for its output and working files.
        minutes: how long it trains.
        leaking: whether to switch on its leak.

    """
    span = minutes or (LEAK_MINUTES + 1 if leaking else 10.0)
    now = datetime.now(timezone.utc)
    seen = Observation(trainer.name, leaking, day=now.date().isoformat())
    folder = results / seen.label
    work, output, log = folder / "work", folder / "output.log", folder / "heapwatch.log"
    work.mkdir(parents=True)
    paths = [str(OBSERVER), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = stack.user | {
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUNBUFFERED": "1",
        "TRAINER_LOG": str(log),
        "OMP_NUM_THREADS": "1",  # several trainers share the machine
        # On a busy machine Ray's agent takes longer than Ray allows it by default.
        "RAY_raylet_start_wait_time_s": "240",
        "RAY_agent_register_timeout_ms": "240000",
    }
    try:
        with (
            output.open("wb") as sink,
            started(
                _command(trainer, span, leaking), env=environment, patience=20, cwd=work,
                stdout=sink, stderr=subprocess.STDOUT,
            ) as process,
        ):  # fmt: skip
            _observe(Run(trainer, stack, seen, folder, process, time.monotonic(), now), span)
            # What it prints when it is ended from here is no trouble of its own.
            seen.tracebacks = tracebacks(output.read_text(encoding="utf-8", errors="replace"))
    finally:
        for address in seen.served:
            reserve(int(address.rpartition(":")[2]))
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    seen.notices = [line for line in lines if line.startswith("INFO ")]
    seen.log = [line for line in lines if line not in seen.notices]
    return seen


def _command(trainer: Trainer, span: float, leaking: bool) -> list[str]:
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={trainer.ranks}"]
    return [
        sys.executable,
        *(launcher if trainer.ranks else []),
        str(trainer.script),
        # The time in which a leak is to be found begins when the endpoint answers, which may be late.
        f"--minutes={span + READY_SECONDS / 60 if leaking else span}",
        *(["--leak"] if leaking else []),
    ]


def tracebacks(output: str) -> list[str]:
    """The last line of each traceback in a trainer's output."""
    found = []
    inside = False
    for line in output.splitlines():
        if "Traceback (most recent call last)" in line:
            inside = True
        elif inside and (match := _TRACEBACK_END.match(line)):
            found.append(match[1].strip())
            inside = False
    return found


def _observe(run: Run, span: float) -> None:
    """Look until the process ends, its leak is found or late, or it overruns; then a little longer."""
    seen = run.seen
    while not _ended(run.process):
        if interrupted.is_set():
            return
        with suppress(httpx.HTTPError, OSError, psutil.Error):
            _poll(run)
        if seen.ready is None:
            if time.monotonic() - run.began > READY_SECONDS:
                return
            continue
        seen.minutes = run.minute
        found = seen.reported is not None and seen.named is not None
        if seen.leaking and (found or run.minute > span):
            return
        if run.minute > span + END_SECONDS / 60:
            seen.exit_code = OVERRAN
            return
    seen.exit_code = run.process.returncode
    if seen.ready is None or seen.leaking:
        return
    until = time.monotonic() + AFTER_SECONDS
    while time.monotonic() < until and not interrupted.wait(POLL_SECONDS):
        with suppress(httpx.HTTPError):
            _alerts(run)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Wait a little for the end, so that a port that becomes free is reserved at once."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(POLL_SECONDS)
    return process.returncode is not None


def _poll(run: Run) -> None:
    seen = run.seen
    if len(seen.served) < run.trainer.endpoints:
        seen.served = sorted({*seen.served, *_serving(run.process.pid)})
        if seen.served and seen.ready is None:
            seen.ready = time.monotonic() - run.began
    if not seen.served:
        return
    for labels, value in run.stack.query('up{job="trainer"} == 1'):
        address = labels["instance"]
        if value and address in seen.served and address not in seen.scraped:
            seen.scraped.append(address)
    resident = run.stack.query("sum by (instance) (trainer_process_resident_memory_bytes)")
    levels = [value for labels, value in resident if labels["instance"] in seen.served]
    if levels:
        seen.memory = (seen.memory[0] or sum(levels), sum(levels))
    _alerts(run)
    if seen.leaking and seen.explained is None:
        _explained(run)


def _serving(pid: int) -> list[str]:
    """Addresses at which a process or one that it started serves a trainer's metrics."""
    parent = psutil.Process(pid)
    found = []
    for process in (parent, *parent.children(recursive=True)):
        with suppress(psutil.Error):
            for connection in process.net_connections(kind="tcp"):
                address = f"127.0.0.1:{connection.laddr.port}"
                if connection.status == psutil.CONN_LISTEN and _is_trainer(address):
                    found.append(address)
    return found


def _is_trainer(address: str) -> bool:
    with suppress(httpx.HTTPError):
        answer = httpx.get(f"http://{address}/metrics", timeout=5, trust_env=False)
        return "trainer_info{" in answer.text
    return False


def _alerts(run: Run) -> None:
    seen, leak = run.seen, run.trainer.leak
    for labels, texts in run.stack.firing(since=run.started):
        if labels.get("instance") not in seen.served:
            continue
        alert = next((one for one in seen.alerts if one.labels == labels), None)
        if alert is None:
            alert = ObservedAlert(round(run.minute, 2), labels)
            seen.alerts.append(alert)
        if alert.named is None and leak.named_in(" ".join([*labels.values(), *texts.values()])):
            alert.named = round(run.minute, 2)


def _explained(run: Run) -> None:
    """Ask `/explain`; only its first finding that is a leak counts, since that is what a person acts on."""
    for address in run.seen.served:
        with suppress(httpx.HTTPError, ValueError, LookupError, TypeError):
            answer = httpx.get(f"http://{address}/explain", timeout=10, trust_env=False)
            if answer.status_code != httpx.codes.OK:
                continue
            (run.folder / "explain.json").write_text(answer.text, encoding="utf-8")
            text = first_leak(answer.json())
            if text is not None and run.trainer.leak.named_in(text):
                run.seen.explained = round(run.minute, 2)
                return


def first_leak(explanation: dict[str, Any]) -> str | None:
    """Path, type and holders of the first finding that is a leak; None while there is none."""
    leak = next((finding for finding in explanation["findings"] if finding["is_leak"]), None)
    return leak and f"{leak['path']} {leak['type']} {json.dumps(leak.get('holders'))}"


_reserved: list[socket.socket] = []


def reserve(port: int) -> None:
    """Keep a port from trainers: one on an earlier one's port would inherit its series and alerts."""
    holder = socket.socket()
    with suppress(OSError):
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", port))
        holder.listen()
        _reserved.append(holder)
