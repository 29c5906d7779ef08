import mmap
import os

import numpy as np

from heapwatch.measure.sizing.memory import Mappings, exported_memory

LIST = """\
1000-2000 rw-p 00000000 00:00 0
2000-5000 rw-p 00000000 00:00 0          [heap]
5000-6000 ---p 00000000 00:00 0
6000-8000 rw-p 00000000 fe:00 12         /home/user/table.arrow
8000-9000 rw-s 00000000 00:19 3          /dev/shm/psm_1 (deleted)
9000-a000 rw-s 00000000 00:01 7          /dev/zero (deleted)
"""


def test_neighbours_of_one_sort_are_one_run(tmp_path):
    path = tmp_path / "maps"
    path.write_text(LIST)
    mappings = Mappings(path)

    assert mappings.extent(0x1000) == mappings.extent(0x4FFF) == 0x4000
    assert mappings.extent(0x5000) == 0x1000
    assert mappings.extent(0x6500) == 0x2000
    assert mappings.extent(0xFFF) is None
    assert mappings.extent(0xA000) is None
    assert [at for at in range(0x1000, 0xA000, 0x1000) if mappings.in_file(at)] == [0x6000, 0x7000]


def test_where_the_kernel_shows_nothing_nothing_is_known(tmp_path):
    mappings = Mappings(tmp_path / "none")

    assert mappings.extent(0x1000) is None
    assert not mappings.in_file(0x1000)


def test_this_process(tmp_path):
    array = np.zeros(10**6)
    path = tmp_path / "file"
    path.write_bytes(bytes(mmap.PAGESIZE))
    descriptor = os.open(path, os.O_RDONLY)
    with mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as mapped:
        address, size = exported_memory(mapped)
        mappings = Mappings()
        assert size == mmap.PAGESIZE
        assert mappings.in_file(address)
        assert not mappings.in_file(array.ctypes.data)
        assert mappings.extent(array.ctypes.data) >= array.nbytes
    os.close(descriptor)
