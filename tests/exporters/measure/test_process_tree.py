import subprocess
import sys

import psutil
import pytest

from heapwatch.measure.process_tree import ProcessTree


@pytest.fixture
def worker():
    worker = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield worker
    worker.kill()
    worker.communicate()


def pids(tree):
    return [process.pid for process in tree.workers()]


def test_listing_takes_its_share_of_the_time_and_no_more(monkeypatch, clock):
    spent, listings = [0.0], []

    def children(self, recursive):
        listings.append(clock.now)
        spent[0] += 0.045  # 2,250 processes on the machine
        return []

    monkeypatch.setattr(psutil.Process, "children", children)
    tree = ProcessTree(share=0.001, clock=clock, spent=lambda: spent[0])
    for _ in range(240):
        for _ in range(9):  # the collectors of one scrape
            tree.workers()
        clock.now += 15
    assert len(listings) == 80
    assert spent[0] / (240 * 15) <= 0.001


def test_no_worker_outlives_its_end(worker):
    tree = ProcessTree(clock=lambda: 0.0)
    assert worker.pid in pids(tree)
    assert worker.pid in pids(tree)
    worker.kill()
    worker.wait()
    assert worker.pid not in pids(tree)


def test_a_new_worker_is_found_once_listing_has_paid_for_itself(clock):
    tree = ProcessTree(clock=clock)
    tree.workers()
    worker = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert worker.pid not in pids(tree)
        clock.now += 600
        assert worker.pid in pids(tree)
    finally:
        worker.communicate(b"\n")


def test_a_trainer_that_ended_has_no_workers(worker):
    tree = ProcessTree(worker.pid)
    worker.kill()
    worker.wait()
    assert pids(tree) == []
