"""Memory that libraries keep to themselves; what they really hold, benchmarks.exactness tests."""

import gc
import subprocess
import sys
import textwrap
import types
import weakref

import jax
import numpy as np
import polars
import pyarrow
import pytest

from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.sizing.deep_size import deep_size
from heapwatch.measure.sizing.foreign import exported

LENGTH = 100_000


def library(monkeypatch, name, code):
    """A module of an installed package."""
    module = types.ModuleType(name)
    module.__file__ = f"/usr/lib/python3/site-packages/{name}/__init__.py"
    monkeypatch.setitem(sys.modules, name, module)
    exec(textwrap.dedent(code), vars(module))
    return module


CUPY = """
    class Memory:
        def __init__(self, ptr, size):
            self.ptr, self.size = ptr, size

    class MemoryPointer:
        def __init__(self, mem, ptr):
            self.mem, self.ptr = mem, ptr

    class ndarray:
        def __init__(self, size, base=None):
            block = Memory(0x7F0000000000, -(-size // 512) * 512)
            self.data = MemoryPointer(block, block.ptr) if base is None else base.data
"""


def test_cupy_arrays_and_their_views(monkeypatch):
    cupy = library(monkeypatch, "cupy", CUPY)
    array = cupy.ndarray(1000)

    assert deep_size([array, cupy.ndarray(10, base=array)]).gpu_bytes == 1024
    assert deep_size(array).error_bytes == 0


INTERFACE = """
    class DeviceArray:
        def __init__(self, shape, strides=None):
            self.shape, self.strides = shape, strides

        @property
        def __cuda_array_interface__(self):
            where = {"data": (4096, False), "typestr": "<f4", "version": 3}
            return {**where, "shape": self.shape, "strides": self.strides}
"""


def test_an_unknown_library_s_array_is_measured_by_the_cuda_array_interface(monkeypatch):
    cls = library(monkeypatch, "numba_like", INTERFACE).DeviceArray

    size = deep_size(cls((10, 100)))
    assert size.gpu_bytes == 4000
    assert size.unread == 1
    assert size.error_bytes > 0
    assert deep_size(cls((10, 100), (800, 8))).gpu_bytes == 9 * 800 + 99 * 8 + 4
    assert deep_size([cls((10,)), cls((10,))]).gpu_bytes == 40  # the same address


def test_properties_of_the_program_s_own_classes_are_not_run():
    asked = []

    class Mine:
        @property
        def __cuda_array_interface__(self):
            asked.append(self)

    class Array(np.ndarray):
        @property
        def base(self):
            asked.append(self)

        def __len__(self):
            asked.append(self)

    size = deep_size([Mine(), np.zeros(LENGTH).view(Array)[:10]])
    assert size.bytes == pytest.approx(8 * LENGTH, abs=3000)
    assert not asked


def test_a_buffer_written_in_python_is_not_asked():
    class Mine:
        def __buffer__(self, flags):
            raise AssertionError("asked")

    assert [part for part in exported(Mine(), layout_of(Mine).mro) if hasattr(part, "nbytes")] == []


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
        assert not {"numpy", "torch", "jax", "polars", "pyarrow", "pandas", "cupy"} & set(sys.modules)
        sys.modules["numpy"] = sys.modules["torch"] = None
        assert deep_size([bytes(1000)]).bytes > 1000
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


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
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=True, env={**__import__("os").environ, **flags},
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    split, copied, pieces = map(int, done.stdout.split())
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


def test_a_jax_array_on_a_gpu_and_the_copy_that_was_made_of_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "jaxlib._jax", types.SimpleNamespace(ArrayImpl=JaxArray))

    assert deep_size(JaxArray(4000)).gpu_bytes == 4000
    assert deep_size([JaxArray(4000), JaxArray(4000)]).gpu_bytes == 4000
    read = deep_size(JaxArray(8 * LENGTH, copy=np.zeros(LENGTH)))
    assert (read.gpu_bytes, read.bytes) == (8 * LENGTH, pytest.approx(8 * LENGTH, abs=1000))
    pinned = deep_size(JaxArray(4000, memory="pinned_host"))
    assert (pinned.gpu_bytes, pinned.bytes) == (0, pytest.approx(4000, abs=200))


def test_a_jax_array_is_not_waited_for(monkeypatch):
    waited = []
    for name in ("block_until_ready", "_value", "__array__"):
        monkeypatch.setattr(JaxArray, name, property(waited.append), raising=False)
    monkeypatch.setitem(sys.modules, "jaxlib._jax", types.SimpleNamespace(ArrayImpl=JaxArray))
    deep_size(JaxArray(10))

    assert not waited


def test_long_lists_of_foreign_arrays_are_estimated():
    arrays = [jax.device_put(np.zeros(1000 + 10 * i, np.float32)) for i in range(200)]
    size = deep_size(arrays, budget_seconds=5)
    true = sum(array.nbytes for array in arrays)
    assert abs(size.bytes - true - 200 * 680) < 3 * size.error_bytes + 5000

    frame = polars.DataFrame({"a": np.zeros(LENGTH)})
    views = [frame[i : i + 5] for i in range(200)]
    assert deep_size(views, budget_seconds=5).error_bytes > 7 * LENGTH


def test_a_slice_of_an_arrow_buffer_keeps_the_whole():
    buffer = pyarrow.py_buffer(bytes(LENGTH))

    assert deep_size(buffer.slice(10, 20)).bytes == pytest.approx(LENGTH, abs=300)
    assert deep_size([buffer, buffer.slice(10, 20)]).bytes == pytest.approx(LENGTH, abs=500)
    assert deep_size(pyarrow.scalar("x" * LENGTH)).bytes == pytest.approx(LENGTH, abs=300)
    nested = pyarrow.array([{"a": "x"}], pyarrow.struct([("a", pyarrow.dictionary("int8", "string"))]))
    assert deep_size(nested).unread == 1


def test_foreign_memory_is_not_kept_alive():
    class Owner(bytearray):
        pass

    owner = Owner(LENGTH)
    gone = weakref.ref(owner)
    buffer = pyarrow.py_buffer(owner)
    deep_size(buffer)
    deep_size(memoryview(owner))
    del buffer, owner
    gc.collect()

    assert gone() is None
