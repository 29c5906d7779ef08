import json
import mmap
import os
from types import SimpleNamespace

import psutil
import pytest

from heapwatch.measure.process.memory import ResidentMemory, malloc_bytes, memory_limit
from tests.support.small_program import printed

RAM = 10**12
V2 = "30 25 0:26 {root} {mount} rw,nosuid - cgroup2 cgroup2 rw\n"
V1 = "35 31 0:29 {root} {mount} rw,relatime - cgroup cgroup rw,memory\n"
CPU = "32 31 0:28 / /nowhere rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"


@pytest.mark.parametrize("statm", ["/proc/self/statm", "/nonexistent/statm"])
def test_resident_memory_agrees_with_psutil(statm):
    memory = ResidentMemory(statm)
    assert memory.read() == pytest.approx(psutil.Process().memory_info().rss, rel=0.05)


def test_resident_memory_gives_its_descriptor_back():
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        memory = ResidentMemory()
        memory.reopen()
    del memory
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_of_the_program_that_has_the_number_of_its_descriptor_stays_open():
    memory = ResidentMemory()
    descriptor = memory._descriptor
    with open(os.devnull) as other:
        os.dup2(other.fileno(), descriptor)
    memory.close()
    os.close(descriptor)  # it is still open


def test_resident_memory_of_a_forked_child_is_its_own():
    memory = ResidentMemory()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        memory.reopen()
        before = memory.read()
        ballast = mmap.mmap(-1, 100_000_000)  # not what malloc may have kept of the parent
        ballast[:: mmap.PAGESIZE] = b"x" * len(range(0, len(ballast), mmap.PAGESIZE))
        os.write(writer, f"{memory.read() - before}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(reader, 100)) == pytest.approx(100_000_000, rel=0.05)
    os.close(reader)
    os.close(writer)


@pytest.fixture
def ram(monkeypatch):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=RAM))


@pytest.fixture
def machine(tmp_path, ram):
    """Describes a procfs entry and a cgroup tree in a folder, and returns the limit that is read there."""
    proc, mount = tmp_path / "proc", tmp_path / "cgroup"

    def read(membership, mounts, limits, name="memory.max"):
        proc.mkdir()
        (proc / "cgroup").write_text(membership)
        (proc / "mountinfo").write_text("".join(line.format(root="/", mount=mount) for line in mounts))
        for path, text in limits.items():
            folder = mount / path.lstrip("/")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        return memory_limit(proc)

    return read


POD = {"/slice": "8000\n", "/slice/pod": "4000\n", "/slice/pod/box": "max\n"}
NESTED = {"/a": "7000\n", "/a/b": "9223372036854771712\n"}


@pytest.mark.parametrize(
    ("membership", "mounts", "limits", "expected"),
    [
        ("0::/slice/pod/box\n", [V2], POD, 4000),
        ("0::/box\n", [V2], {"/box": "max\n"}, RAM),
        ("0::/docker/abc\n", [V2.replace("{root}", "/docker/abc")], {"/": "5000\n"}, 5000),
        ("0::/../other\n", [V2], {"/": "6000\n"}, 6000),
        ("5:cpu:/x\n4:memory:/a/b\n0::/\n", [CPU, V1], NESTED, 7000),
    ],
    ids=[
        "the tightest limit on the path", "no limit", "a container that shows the path on the host",
        "a namespace with a foreign root", "version 1, nested and unlimited",
    ],
)  # fmt: skip
def test_the_limit_of_the_control_groups(machine, membership, mounts, limits, expected):
    name = "memory.limit_in_bytes" if V1 in mounts else "memory.max"
    assert machine(membership, mounts, limits, name) == expected


@pytest.mark.parametrize("membership", ["", "0::/box\n", "4:memory:/a\n", "garbage\n", "4:memory\n"])
def test_without_a_limit_that_can_be_read_it_is_the_ram(machine, membership):
    assert machine(membership, [CPU, "not a mount line\n"], {}) == RAM


@pytest.mark.usefixtures("ram")
def test_without_procfs_it_is_the_ram(tmp_path):
    assert memory_limit(tmp_path / "none") == RAM


def test_here_it_is_no_more_than_the_ram():
    assert 10**8 < memory_limit() <= psutil.virtual_memory().total


# A heap of its own, of which everything is known.
RETURNS = """
import ctypes, json, mmap
import psutil
from heapwatch.measure.process.memory import malloc_bytes

def tell():
    anonymous = psutil.Process().memory_info()
    said.append((*malloc_bytes(), anonymous.rss - anonymous.shared))

said = []
pieces = [bytes(2000) for _ in range(100_000)]
pins = pieces[::40]
del pieces
tell()
ctypes.CDLL(None).malloc_trim(0)
tell()
other = mmap.mmap(-1, 100_000_000)
other[:: mmap.PAGESIZE] = b"x" * len(range(0, len(other), mmap.PAGESIZE))
tell()
again = [bytes(2000) for _ in range(30_000)]
malloc_bytes()
del again
tell()
print(json.dumps(said))
"""


@pytest.mark.skipif(malloc_bytes() == (None, None), reason="this C library has no mallinfo2")
def test_freed_memory_that_was_returned_is_not_kept():
    said = json.loads(printed(RETURNS))
    freed, returned, grown, used_again = (kept for _, kept, _ in said)
    assert freed > 180e6
    assert returned < 40e6
    assert grown == pytest.approx(returned, abs=1e6)  # no part of what others hold
    assert 55e6 < used_again < returned + 65e6
    for used, kept, resident in said:
        assert used + kept < 1.02 * resident
