"""Memory that libraries keep to themselves; what they really hold, test_libraries.py tests."""

import re
import sqlite3
import sys
import threading
import types
import zlib

import jax
import numpy as np
import PIL.Image
import pyarrow
import pytest
import torch

from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.sizing.deep_size import deep_size
from heapwatch.measure.sizing.foreign import Mappings, exported, holds_memory
from tests.support.small_program import printed

LENGTH = 100_000


def test_code_of_the_program_s_own_classes_is_not_run():
    asked = []

    class Mine:
        def __buffer__(self, flags):
            asked.append(self)

    class Array(np.ndarray):
        @property
        def base(self):
            asked.append(self)

        def __len__(self):
            asked.append(self)

    size = deep_size([Mine(), np.zeros(LENGTH).view(Array)[:10]])
    assert size.bytes == pytest.approx(8 * LENGTH, abs=3000)
    assert [part for part in exported(Mine(), layout_of(Mine).mro) if hasattr(part, "nbytes")] == []
    assert not asked


def test_an_array_over_a_capsule_counts_what_it_shows():
    array = np.from_dlpack(jax.numpy.zeros(LENGTH))
    while type(array.base) is np.ndarray:
        array = array.base

    assert type(array.base).__name__ == "PyCapsule"
    size = deep_size(array)
    assert size.bytes == pytest.approx(4 * LENGTH, abs=1000)
    assert size.unread == 1


def test_no_library_is_imported_or_needed():
    code = """
        import sys
        from heapwatch.measure.sizing.deep_size import deep_size
        deep_size([object(), bytes(100), {1: [2]}])
        assert not {"numpy", "torch", "jax", "pyarrow", "pandas"} & set(sys.modules)
        sys.modules["numpy"] = sys.modules["torch"] = None
        assert deep_size([bytes(1000)]).bytes > 1000
        """
    assert printed(code) == ""


@pytest.mark.slow
def test_a_sharded_jax_array_counts_each_piece():
    code = """
        import jax, numpy
        from jax.sharding import Mesh, NamedSharding, PartitionSpec
        from heapwatch.measure.sizing.deep_size import deep_size
        mesh = Mesh(numpy.array(jax.devices()), ("x",))
        split = jax.device_put(jax.numpy.zeros(40_000), NamedSharding(mesh, PartitionSpec("x")))
        copied = jax.device_put(jax.numpy.zeros(40_000), NamedSharding(mesh, PartitionSpec()))
        print(deep_size(split).bytes, deep_size(copied).bytes, deep_size([split, *split._arrays]).bytes)
        """
    found = printed(code, XLA_FLAGS="--xla_force_host_platform_device_count=4", JAX_PLATFORMS="cpu")
    split, copied, pieces = map(int, found.split())
    assert split == pytest.approx(160_000, abs=2000)
    assert copied == pytest.approx(640_000, abs=2000)
    assert pieces == pytest.approx(160_000, abs=6000)


class JaxArray:
    """What `jax.Array` has on a GPU."""

    def __init__(self, size, copy=None, memory="device", pointer=8192):
        self.size, self._npy_value, self.pointer = size, copy, pointer
        self.sharding = types.SimpleNamespace(memory_kind=memory)
        self._arrays = [self]

    def is_deleted(self):
        return False

    def platform(self):
        return "gpu"

    def on_device_size_in_bytes(self):
        return self.size

    def unsafe_buffer_pointer(self):
        return self.pointer


def test_a_jax_array_on_a_gpu_and_the_copy_that_was_made_of_it_are_not_waited_for(monkeypatch):
    waited = []
    monkeypatch.setitem(sys.modules, "jaxlib._jax", types.SimpleNamespace(ArrayImpl=JaxArray))
    for name in ("block_until_ready", "_value", "__array__"):
        monkeypatch.setattr(JaxArray, name, property(waited.append), raising=False)
    assert deep_size(JaxArray(4000)).gpu_bytes == 4000
    assert deep_size([JaxArray(4000), JaxArray(4000)]).gpu_bytes == 4000
    read = deep_size(JaxArray(8 * LENGTH, copy=np.zeros(LENGTH)))
    assert (read.gpu_bytes, read.bytes) == (8 * LENGTH, pytest.approx(8 * LENGTH, abs=1000))
    pinned = deep_size(JaxArray(4000, memory="pinned_host"))
    assert (pinned.gpu_bytes, pinned.bytes) == (0, pytest.approx(4000, abs=200))
    assert not waited


def test_long_lists_of_foreign_arrays_are_estimated():
    arrays = [jax.device_put(np.zeros(1000 + 10 * i, np.float32)) for i in range(200)]
    size = deep_size(arrays, budget_seconds=5)
    true = sum(array.nbytes for array in arrays)
    assert abs(size.bytes - true - 200 * 680) < 3 * size.error_bytes + 5000


def test_a_slice_of_an_arrow_buffer_keeps_the_whole():
    buffer = pyarrow.py_buffer(bytes(LENGTH))

    assert deep_size(buffer.slice(10, 20)).bytes == pytest.approx(LENGTH, abs=300)
    assert deep_size([buffer, buffer.slice(10, 20)]).bytes == pytest.approx(LENGTH, abs=500)
    nested = pyarrow.array([{"a": "x"}], pyarrow.struct([("a", pyarrow.dictionary("int8", "string"))]))
    assert deep_size(nested).unread == 1


LIST = """\
1000-2000 rw-p 00000000 00:00 0
2000-5000 rw-p 00000000 00:00 0          [heap]
5000-6000 ---p 00000000 00:00 0
6000-7000 rw-p 00000000 fe:00 12         /home/user/table.arrow
7000-8000 rw-p 00000000 fe:00 13         /home/user/index.arrow
8000-9000 rw-s 00000000 00:19 3          /dev/shm/psm_1 (deleted)
9000-a000 rw-s 00000000 00:01 7          /dev/zero (deleted)
"""


def test_what_lies_in_a_file_is_known_and_without_the_list_nothing_is(tmp_path):
    path = tmp_path / "maps"
    path.write_text(LIST)
    mappings = Mappings(path)

    assert [at for at in range(0x1000, 0xA000, 0x1000) if mappings.in_file(at)] == [0x6000, 0x7000]
    for unknown, at in ((mappings, 0xFFF), (mappings, 0xA000), (Mappings(tmp_path / "none"), 0x1000)):
        assert not unknown.in_file(at)


class Plain:
    pass


class Slotted:
    __slots__ = ("__weakref__", "a", "b")


class Failure(ValueError):
    pass


@pytest.mark.parametrize(
    "obj",
    [
        Plain(),
        Slotted(),
        Failure(),
        re.compile("a"),
        threading.Lock(),
        iter({}),
        np.dtype("f4"),
        torch.Generator(),
        Plain.__dict__,
        print,
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_what_python_shows_holds_nothing_more(obj):
    assert not holds_memory(layout_of(type(obj)))


@pytest.mark.parametrize(
    "obj",
    [
        PIL.Image.new("L", (1, 1)).im,
        sqlite3.connect(":memory:"),
        type("Database", (sqlite3.Connection,), {})(":memory:"),
        zlib.compressobj(),
        torch.zeros(1, requires_grad=True).exp().grad_fn,
        np.core.multiarray._ARRAY_API,
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_a_type_that_nothing_is_known_of_may_hold_anything(obj):
    assert holds_memory(layout_of(type(obj)))
