import os

import psutil
import pytest

from heapwatch.measure.process.resident_memory import ResidentMemory, memory_limit

RAM = 10**12
V2 = "30 25 0:26 {root} {mount} rw,nosuid - cgroup2 cgroup2 rw\n"
V1 = "35 31 0:29 {root} {mount} rw,relatime - cgroup cgroup rw,memory\n"
CPU = "32 31 0:28 / /nowhere rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"


def test_resident_memory_agrees_with_psutil():
    memory = ResidentMemory()
    assert memory.read() == pytest.approx(psutil.Process().memory_info().rss, rel=0.05)


def test_resident_memory_without_procfs():
    memory = ResidentMemory(statm="/nonexistent/statm")
    assert memory.read() == pytest.approx(psutil.Process().memory_info().rss, rel=0.05)


def test_resident_memory_gives_its_descriptor_back():
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        memory = ResidentMemory()
        memory.reopen()
    del memory
    assert len(os.listdir("/proc/self/fd")) == before


def test_resident_memory_of_a_forked_child_is_its_own():
    memory = ResidentMemory()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        memory.reopen()
        before = memory.read()
        ballast = bytearray(b"x") * 100_000_000
        os.write(writer, f"{memory.read() - before} {len(ballast)}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    grown, ballast = map(int, os.read(reader, 100).split())
    assert grown == pytest.approx(ballast, rel=0.05)
    os.close(reader)
    os.close(writer)


class Machine:
    """A procfs entry and a cgroup tree in a folder."""

    def __init__(self, folder):
        self.proc = folder / "proc"
        self.mount = folder / "cgroup"
        self.proc.mkdir()
        self.mount.mkdir()

    def describe(self, membership, *mounts):
        (self.proc / "cgroup").write_text(membership)
        (self.proc / "mountinfo").write_text("".join(mounts))

    def limit(self, path, text, name="memory.max"):
        folder = self.mount / path.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    def read(self):
        return memory_limit(self.proc, physical=RAM)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_v2_the_tightest_limit_on_the_path_counts(machine):
    machine.describe("0::/slice/pod/box\n", V2.format(root="/", mount=machine.mount))
    machine.limit("/slice", "8000\n")
    machine.limit("/slice/pod", "4000\n")
    machine.limit("/slice/pod/box", "max\n")
    assert machine.read() == 4000


def test_v2_max_means_the_ram(machine):
    machine.describe("0::/box\n", V2.format(root="/", mount=machine.mount))
    machine.limit("/box", "max\n")
    assert machine.read() == RAM


def test_v2_in_a_container_that_still_shows_the_hosts_path(machine):
    machine.describe("0::/docker/abc\n", V2.format(root="/docker/abc", mount=machine.mount))
    machine.limit("/", "5000\n")
    assert machine.read() == 5000


def test_v2_in_a_namespace_with_a_foreign_root(machine):
    machine.describe("0::/../other\n", V2.format(root="/", mount=machine.mount))
    machine.limit("/", "6000\n")
    assert machine.read() == 6000


def test_v1_nested_and_unlimited(machine):
    machine.describe("5:cpu:/x\n4:memory:/a/b\n0::/\n", CPU, V1.format(root="/", mount=machine.mount))
    machine.limit("/a", "7000\n", "memory.limit_in_bytes")
    machine.limit("/a/b", "9223372036854771712\n", "memory.limit_in_bytes")
    assert machine.read() == 7000


@pytest.mark.parametrize("membership", ["", "0::/box\n", "4:memory:/a\n", "garbage\n", "4:memory\n"])
def test_without_a_limit_that_can_be_read_it_is_the_ram(machine, membership):
    machine.describe(membership, CPU, "not a mount line\n")
    assert machine.read() == RAM


def test_without_procfs_it_is_the_ram(tmp_path):
    assert memory_limit(tmp_path / "none", physical=RAM) == RAM


def test_here():
    assert 10**8 < memory_limit() <= psutil.virtual_memory().total
