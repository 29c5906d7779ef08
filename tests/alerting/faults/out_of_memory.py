"""The OOM killer ends the receiver, and Prometheus. It needs root and a memory controller of cgroups."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.alerting.faults.stage import Outcome, Stage, fault
from tests.alerting.harness import HEADERS, Program, alert, wait_for

TRIES = 3
LIMITS = ("memory.limit_in_bytes", "memory.max")
ROOTS = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))
HEADROOM = 128 << 10  # bytes it may still allocate: what it has is charged to the group it came from


@contextmanager
def _little_memory(program: Program) -> Iterator[bool]:
    """Move a process into a group with little memory; whether that can be done here."""
    for root, limit in ((root, limit) for root in ROOTS for limit in LIMITS):
        group = root / f"heapwatch-faults-{program.process.pid}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text(str(HEADROOM))
            (group / "cgroup.procs").write_text(str(program.process.pid))
        except OSError:
            group.rmdir()
            continue
        try:
            yield True
        finally:
            program.kill()
            group.rmdir()
        return
    yield False


def _killed(program: Program, outcome: Outcome, load: Callable[[], object]) -> None:
    with _little_memory(program) as possible:
        if not possible:
            outcome.note = "by SIGKILL: this machine lets nobody limit memory"
            program.kill()
        wait_for(lambda: program.process.poll() is not None or load(), "the kernel ends it", 60)
        assert program.process.wait(10) == -signal.SIGKILL


@fault("the OOM killer ends the receiver", TRIES)
def receiver(stage: Stage, outcome: Outcome) -> None:
    receiver, trainer = stage.receiver().start(), stage.trainer("slow")
    receiver.post(alert(trainer.instance))

    def load() -> bool:
        headers = {**HEADERS, "Content-Type": "application/json"}
        httpx.post(f"{receiver.url}/alerts", content=b" " * 900_000, headers=headers, timeout=10)
        return False

    _killed(receiver.program, outcome, load)
    with outcome.recovery():
        receiver.start()
        trainer.wait_until_done()
        receiver.decided(1)
    outcome.count(trainer)


@fault("the OOM killer ends Prometheus, which is started again", TRIES)
def prometheus(stage: Stage, outcome: Outcome) -> None:
    prometheus = stage.own_prometheus()
    receiver = stage.receiver(prometheus_url=prometheus.url).start()
    trainer = stage.trainer(prometheus=prometheus)
    _killed(prometheus.program, outcome, lambda: False)
    receiver.post(alert(trainer.instance))
    with outcome.recovery():
        prometheus.start()
        trainer.wait_until_done()
        receiver.decided(1, 60)
    outcome.count(trainer)
