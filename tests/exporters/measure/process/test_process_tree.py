"""The live descendants of a process."""

import multiprocessing
import multiprocessing.resource_tracker
import os
import subprocess
import sys
import time

import psutil
import pytest

from heapwatch.measure.process import process_tree
from heapwatch.measure.process.process_tree import ProcessTree, descendants
from heapwatch.measure.process.procfs import memory_parts


@pytest.fixture
def worker():
    worker = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield worker
    worker.kill()
    worker.communicate()


def pids(tree):
    return [process.pid for process in tree.workers()]


def test_the_workers_are_listed_every_ten_seconds(monkeypatch, clock):
    listings = []
    monkeypatch.setattr(process_tree, "descendants", lambda pid: listings.append(clock.now) or [])
    tree, began = ProcessTree(clock=clock), clock.now
    for _ in range(25):
        tree.workers()
        clock.now += 1
    assert listings == [began, began + 10, began + 20]


def test_no_worker_outlives_its_end_and_a_trainer_that_ended_has_none(worker):
    tree = ProcessTree(clock=lambda: 0.0)
    for _ in range(2):
        assert worker.pid in pids(tree)
    of_worker = ProcessTree(worker.pid)
    worker.kill()
    worker.wait()
    assert worker.pid not in pids(tree)
    assert pids(of_worker) == []


def nothing(go_on):
    go_on.wait(30)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_what_multiprocessing_keeps_for_itself_is_no_worker(method):
    multiprocessing.resource_tracker.ensure_running()
    tracker = multiprocessing.resource_tracker._resource_tracker._pid
    while "resource_tracker" not in " ".join(psutil.Process(tracker).cmdline()):
        time.sleep(0.001)  # forked, but not yet the program that it becomes
    context = multiprocessing.get_context(method)
    before = set(pids(ProcessTree()))
    all_before = {child.pid for child in psutil.Process().children(recursive=True)}
    go_on = context.Event()
    workers = [context.Process(target=nothing, args=(go_on,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    try:
        ours = {worker.pid for worker in workers}
        assert set(pids(ProcessTree())) - before == ours
        assert ours <= set(descendants(os.getpid()))
        assert tracker not in before
        assert tracker not in descendants(os.getpid())
        if method == "forkserver":
            assert {child.pid for child in psutil.Process().children(recursive=True)} - all_before > ours
    finally:
        go_on.set()
        for worker in workers:
            worker.join()


def test_children_are_found_and_weighed() -> None:
    program = "import sys; held = bytearray(b'x' * 30_000_000); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert child.pid in descendants(os.getpid())
        parts = memory_parts(child.pid)
        assert parts is not None
        assert parts.anonymous > 30_000_000
        child.communicate()
    assert child.pid not in descendants(os.getpid())
    assert memory_parts(child.pid) is None


def test_without_the_kernels_lists_psutil_is_asked(worker, tmp_path):
    assert worker.pid in descendants(os.getpid(), proc=str(tmp_path))
