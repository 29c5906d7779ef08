"""Workers that end while they are watched: real processes, ended by signals and by themselves."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heapwatch.explain.ended_workers import WorkerEnds
from heapwatch.explain.engine import Explainer
from heapwatch.explain.findings import EndedWorkers
from heapwatch.explain.workers import COMPARED_SECONDS, WorkerVisits
from tests.exporters.measure.process.test_ended import of_processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how a process has ended")

Start = Callable[[int], list[subprocess.Popen[bytes]]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts processes that end with the exit code that they read."""
    started: list[subprocess.Popen[bytes]] = []

    def start(count: int) -> list[subprocess.Popen[bytes]]:
        code = "import sys; sys.exit(int(input()))"
        command = [sys.executable, "-I", "-S", "-c", code]
        processes = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(count)]
        started.extend(processes)
        return processes

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def ends(clock: list[float]) -> Iterator[WorkerEnds]:
    ends = WorkerEnds(WorkerVisits(lambda: clock[0]), lambda: clock[0])
    yield ends
    ends.close()


@pytest.fixture
def explainer(clock: list[float]) -> Iterator[Explainer]:
    explainer = Explainer(clock=lambda: clock[0])
    yield explainer
    explainer.ends.close()


def saw(ends: WorkerEnds, processes: list[subprocess.Popen[bytes]]) -> list[int]:
    pids = [process.pid for process in processes]
    ends.saw(dict.fromkeys(pids, 1000))
    return pids


def end(process: subprocess.Popen[bytes], how: str) -> None:
    """End it, and wait until it is a zombie."""
    if how.startswith("SIG"):
        process.send_signal(signal.Signals[how])
    else:
        assert process.stdin is not None
        process.stdin.write(how.encode() + b"\n")
        process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    found = [(record.levelno, record.message) for record in caplog.records if record.name == "heapwatch"]
    caplog.clear()
    return found


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "heapwatch")


def test_each_way_of_ending_has_a_line_and_those_that_end_by_themselves_none(
    ends: WorkerEnds, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    workers = start(5)
    pids = saw(ends, workers)
    saw(ends, workers)
    assert of_processes() == 5
    assert not ends.step()
    for process, how in zip(workers, ("SIGSEGV", "3", "0", "SIGTERM", "SIGSEGV"), strict=True):
        end(process, how)
    assert ends.step()
    assert lines(caplog) == [
        (logging.WARNING, f"2 worker processes were killed by SIGSEGV: {pids[0]}, {pids[4]}"),
        (logging.WARNING, f"1 worker process ended with exit code 3: {pids[1]}"),
        (logging.INFO, f"1 worker process was ended by SIGTERM: {pids[3]}"),
    ]
    assert not ends.step()
    expected = [("SIGSEGV", 2), ("exit code 3", 1), ("SIGTERM", 1)]
    assert ends.so_far() == tuple(EndedWorkers(*one) for one in expected)
    assert [process.wait(30) for process in workers] == [-11, 3, 0, -15, -11]
    assert of_processes() == 0


def test_a_descriptor_that_the_program_has_closed_is_left(
    ends: WorkerEnds, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    workers = start(2)
    saw(ends, workers)
    first, second = ends._descriptors.values()
    os.close(first)
    with Path(os.devnull).open() as file:
        os.dup2(file.fileno(), second)
    for worker in workers:
        end(worker, "SIGKILL")
    assert not ends.step()
    ends.close()
    os.close(second)  # it is still open
    assert lines(caplog) == []


def test_a_forked_child_has_none_of_the_descriptors(explainer: Explainer, start: Start) -> None:
    workers = start(2)
    saw(explainer.ends, workers)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            explainer.abandon()
            saw(explainer.ends, workers)
            code = 2 if explainer.ends.step() or of_processes() else 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    end(workers[0], "SIGKILL")
    assert explainer.ends.step()


def test_an_end_that_is_repeated_is_said_again_after_a_while_with_all_since(
    ends: WorkerEnds, start: Start, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    workers = start(11)
    pids = saw(ends, workers)
    for worker in workers:
        end(worker, "1")
        assert ends.step()
        clock[0] += 50
    (first,) = lines(caplog)
    assert first[1] == f"1 worker process ended with exit code 1: {pids[0]}"
    clock[0] += 50
    assert not ends.step()
    ((_, text),) = lines(caplog)
    named = ", ".join(map(str, pids[1:9]))
    assert text == f"10 worker processes ended with exit code 1: {named}, ..."
    assert ends.so_far() == (EndedWorkers("exit code 1", 11),)


@pytest.mark.parametrize(
    ("how", "level", "said", "begins"),
    [
        ("SIGSEGV", logging.WARNING, "was killed by SIGSEGV {} (signal 11); no other worker is entered", 1),
        ("SIGTERM", logging.INFO, "was killed by SIGTERM {} (signal 15)", 2),
    ],
)
def test_a_worker_that_dies_of_a_visit_is_the_last_that_is_entered(
    how: str,
    level: int,
    said: str,
    begins: int,
    start: Start,
    clock: list[float],
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker, other = start(2)
    sizes = [{worker.pid: at, other.pid: 0} for at in range(4)]
    visits = WorkerVisits(
        lambda: clock[0], lambda: sizes.pop(0), lambda pid: [sys.executable, "-S", "-c", ""]
    )
    ends = WorkerEnds(visits, lambda: clock[0])
    saw(ends, [worker, other])
    for _ in range(2):
        visits.step(True)
        clock[0] += COMPARED_SECONDS
    end(worker, how)
    assert ends.step()
    when = "during a visit of Heapwatch or right after it"
    assert lines(caplog) == [(level, f"worker process {worker.pid} {said.format(when)}")]
    assert not visits.is_visited(other.pid)
    until = time.monotonic() + 30
    while visits._visitor is not None and time.monotonic() < until:
        visits.step(True)
        time.sleep(0.01)
    assert visits.is_visited(worker.pid)
    lines(caplog)
    clock[0] += 1000
    assert not visits.is_visited(worker.pid)
    for _ in range(2):
        visits.step(True)
        clock[0] += COMPARED_SECONDS
    visits.stop()
    ends.close()
    assert visits.visits == begins


RUN = """
import multiprocessing, os, signal, time

def work():
    time.sleep(12)
    os.kill(os.getpid(), signal.SIGSEGV)

if __name__ == "__main__":
    workers = [multiprocessing.get_context("spawn").Process(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(*(worker.exitcode for worker in workers))
    time.sleep(2)
"""


@pytest.mark.slow
def test_a_run_whose_workers_crash_says_so_in_its_log_and_in_its_explanation(
    tmp_path: Path,
) -> None:
    (tmp_path / "train.py").write_text(RUN)
    done = subprocess.run(
        [sys.executable, "-m", "heapwatch.cli.main", "run", "--json", "train.py"],
        cwd=tmp_path,
        env=os.environ | {"HEAPWATCH_TARGETS_DIR": str(tmp_path / "targets")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout.partition("\n")[0]) == (0, "-11 -11"), done.stderr
    found = json.loads(done.stdout.partition("\n")[2])
    assert found["ended_workers"] == [{"how": "SIGSEGV", "count": 2}]
    assert found["message"].endswith("2 worker processes were killed by SIGSEGV.")
    assert " killed by SIGSEGV: " in done.stderr
