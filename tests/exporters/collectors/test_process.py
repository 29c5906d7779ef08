import itertools
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from types import SimpleNamespace

import psutil
import pytest

from heapwatch.collectors.process import (
    AllocatorCollector,
    BaselineCollector,
    InfoCollector,
    ProcessCollector,
    Rank,
    UniqueMemoryCollector,
    array_task,
    current_rank,
)
from heapwatch.measure.process import process_tree
from heapwatch.measure.process.process_tree import ProcessTree, descendants
from heapwatch.runtime.labels import machine
from tests.support.exposed import value, values

WORKER = "import sys; ballast = bytearray(b'x') * 50_000_000; print('ready', flush=True); sys.stdin.read()"
SPINNER = "import time\nwhile time.process_time() < 0.3: pass\nprint('spun', flush=True)\ninput()"


@pytest.fixture(autouse=True)
def children_of_this_test_alone(monkeypatch):
    """Servers that other tests of this process left running are no workers of a trainer."""
    others = {*descendants(os.getpid())}
    monkeypatch.setattr(
        process_tree, "descendants", lambda pid: [child for child in descendants(pid) if child not in others]
    )


def start(code):
    worker = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    worker.stdout.readline()
    return worker


def stop(worker):
    worker.communicate("\n")


@pytest.fixture
def worker():
    worker = start(WORKER)
    yield worker
    worker.kill()
    worker.communicate()


def by_role(families, name):
    return values(families, f"trainer_process{name}", "role")


def unique(collector):
    return values(collector.collect(), "trainer_process_unique_memory_bytes", "role")


def test_without_workers_or_after_its_end_a_process_has_no_series_of_them(worker):
    ended = ProcessCollector(ProcessTree(worker.pid))
    stop(worker)
    with pytest.raises(psutil.NoSuchProcess):
        list(ended.collect())
    families = list(ProcessCollector(ProcessTree()).collect())
    assert by_role(families, "es") == {"trainer": 1, "worker": 0}
    own = psutil.Process().memory_info()
    assert by_role(families, "_resident_memory_bytes") == {"trainer": pytest.approx(own.rss, rel=0.05)}
    assert by_role(families, "_virtual_memory_bytes") == {"trainer": pytest.approx(own.vms, rel=0.05)}
    assert by_role(families, "_cpu_seconds_total")["trainer"] == pytest.approx(time.process_time(), abs=0.5)
    assert value(families, "trainer_memory_limit_bytes") <= psutil.virtual_memory().total


def test_workers_are_summed_and_no_descriptor_is_kept(worker):
    tree = ProcessTree()
    collector, of_pages = ProcessCollector(tree), UniqueMemoryCollector(tree)
    families = list(collector.collect())
    assert by_role(families, "es") == {"trainer": 1, "worker": 1}
    assert by_role(families, "_resident_memory_bytes")["worker"] > 50_000_000
    assert unique(of_pages)["worker"] > 50_000_000
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        list(collector.collect())
        list(of_pages.collect())
    assert len(os.listdir("/proc/self/fd")) == before


def test_workers_that_ended_take_their_memory_with_them_but_not_their_cpu_time():
    collector = ProcessCollector(ProcessTree(clock=itertools.count(0, 60).__next__))
    used = [by_role(collector.collect(), "_cpu_seconds_total")["worker"]]
    for _ in range(2):
        spinner = start(SPINNER)
        used.append(by_role(collector.collect(), "_cpu_seconds_total")["worker"])
        stop(spinner)
        families = list(collector.collect())
        used.append(by_role(families, "_cpu_seconds_total")["worker"])
        assert by_role(families, "_resident_memory_bytes").keys() == {"trainer"}
    assert used == sorted(used)
    assert used[-1] > 0.5


@pytest.fixture
def reads(monkeypatch, clock):
    """The times of the reads of unique memory, each of which takes so many seconds."""
    made = SimpleNamespace(at=[], seconds=1.0)

    def read(self):
        made.at.append(clock.now)
        clock.now += made.seconds
        return SimpleNamespace(rss=100, uss=60)

    monkeypatch.setattr(psutil.Process, "memory_full_info", read)
    return made


def test_forked_workers_do_not_count_the_pages_that_they_share():
    """The trainer's pages are resident in each of them; what one takes itself is its own."""
    held = bytearray(os.urandom(1000)) * 60_000
    ready, own = os.pipe()
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            grown = bytearray(os.urandom(1000)) * 20_000
            os.write(own, b"x")
            time.sleep(60 + 0 * len(grown))
            os._exit(0)
        children.append(child)
    try:
        for _ in children:
            os.read(ready, 1)
        tree = ProcessTree()
        collector = UniqueMemoryCollector(tree)
        alone = unique(collector)["worker"]
        resident = by_role(ProcessCollector(tree).collect(), "_resident_memory_bytes")["worker"]
        assert 60e6 < alone < 60e6 + len(held)
        assert resident > alone + 2 * len(held)
        available = [
            value(ProcessCollector(tree, counted).collect(), "trainer_memory_available_bytes")
            for counted in (lambda: collector.workers, lambda: None)
        ]
        assert available[1] - available[0] > len(held)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        os.close(ready)
        os.close(own)


def test_a_worker_that_is_not_counted_yet_is_left_out(monkeypatch, clock, reads, worker):
    """Its resident memory may be another's."""
    reads.seconds = 0.1
    workers = []
    monkeypatch.setattr(ProcessTree, "workers", lambda self: workers)
    collector = UniqueMemoryCollector(ProcessTree(), clock)
    assert unique(collector).keys() == {"trainer"}
    workers.append(psutil.Process(worker.pid))
    clock.now += 15
    assert unique(collector).keys() == {"trainer"}
    clock.now += 60
    assert unique(collector).keys() == {"trainer", "worker"}


def test_the_baseline_is_the_memory_of_the_first_safe_point_and_stays():
    levels = iter([4_000_000_000, 9_000_000_000])
    baseline = BaselineCollector(lambda: next(levels))
    assert [family.samples for family in baseline.collect()] == [[]]
    baseline.note()
    baseline.note()
    (family,) = baseline.collect()
    assert [sample.value for sample in family.samples] == [4e9]


def allocated():
    families = list(AllocatorCollector().collect())
    return tuple(
        value(families, f"trainer_{name}")
        for name in ("allocator_used_bytes", "allocator_retained_bytes", "python_allocated_blocks")
    )


def test_what_is_allocated_is_used_and_what_is_freed_is_retained():
    used, _, blocks = allocated()
    big = bytearray(300_000_000)  # which malloc maps by itself
    assert allocated()[0] > used + 290_000_000
    del big
    used, _, _ = allocated()
    ballast = [bytes(2000) for _ in range(50_000)]
    pins = ballast[::50]
    full, retained, _ = allocated()  # it may have taken what was free before
    assert full > used + 90_000_000
    del ballast
    after = allocated()
    assert after[0] < used + 20_000_000
    assert after[1] > retained + 50_000_000
    small = [object() for _ in range(50_000)]
    assert allocated()[2] > blocks + 49_000
    assert (len(pins), len(small)) == (1000, 50_000)


def test_names_start_and_machine_are_labels_of_constant_ones():
    samples = [s for family in InfoCollector("ppo", "sb3", "7").collect() for s in family.samples]
    assert [(one.name, one.value) for one in samples] == [("trainer_info", 1), ("trainer_machine_info", 1)]
    started = datetime.fromtimestamp(psutil.Process().create_time())
    assert samples[0].labels == {
        "trainer": "ppo", "framework": "sb3", "run": "7", "rank": "", "world_size": "",
        "started": f"{started:%m-%d %H:%M}", "title": f"ppo 7, {started:%m-%d %H:%M}",
    }  # fmt: skip
    assert samples[1].labels == {"machine": machine()}


def test_a_title_has_what_is_known_of_name_run_rank_and_start():
    info, _ = InfoCollector("ppo", "", "", Rank(3, 8)).collect()
    (sample,) = info.samples
    assert sample.labels["title"] == f"ppo rank 3, {sample.labels['started']}"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"RANK": "3", "WORLD_SIZE": "64"}, Rank(3, 64)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, Rank(0, 2)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}, Rank(1, 4)),
        ({"PMI_RANK": "7", "PMI_SIZE": "8"}, Rank(7, 8)),
        # torchrun inside a Slurm job of one task a node
        ({"RANK": "9", "WORLD_SIZE": "16", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, Rank(9, 16)),
        # a job of one process has no ranks worth a label
        ({"RANK": "0", "WORLD_SIZE": "1"}, None),
        # a program's own variable of that name
        ({"RANK": "captain"}, None),
        ({"RANK": "64", "WORLD_SIZE": "64"}, None),
    ],
)
def test_the_rank_is_what_the_launcher_says(environment: dict[str, str], expected: Rank | None) -> None:
    assert current_rank(environment) == expected


def test_a_task_of_a_slurm_array_is_a_run_of_its_own() -> None:
    assert array_task({"SLURM_ARRAY_JOB_ID": "812", "SLURM_ARRAY_TASK_ID": "17"}) == "812_17"
    assert array_task({"SLURM_ARRAY_TASK_ID": "17"}) == ""
    assert array_task({}) == ""
