"""The pools of libraries on GPUs, and the parts of the memory of a GPU."""

import sys
import types

import jax
import pytest

from heapwatch.measure.gpu import GpuParts, Pool, Processes, cupy_pools, jax_pools, torch_pools
from tests.exporters import cupy_double


def device(number, statistics, **attributes):
    return types.SimpleNamespace(id=number, memory_stats=lambda: statistics, **attributes)


def backends(monkeypatch, **clients):
    bridge = types.SimpleNamespace(
        _backends={
            platform: types.SimpleNamespace(platform=platform, local_devices=lambda held=devices: held)
            for platform, devices in clients.items()
        }
    )
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", bridge)


def test_the_pools_of_jax_by_device(monkeypatch):
    backends(
        monkeypatch,
        cpu=[device(0, None)],
        cuda=[
            device(8, {"bytes_in_use": 10, "pool_bytes": 900}, local_hardware_id=0),
            device(1, {"bytes_in_use": 20}),  # without a pool
            device(2, None),
        ],
    )

    assert jax_pools() == {0: Pool(10, 900), 1: Pool(20, 20)}


def test_no_backend_of_jax_is_made_and_one_for_a_cpu_has_no_pools(monkeypatch):
    jax.numpy.zeros(1)
    assert jax_pools() == {}
    backends(monkeypatch)
    assert jax_pools() == {}
    monkeypatch.delitem(sys.modules, "jax._src.xla_bridge", raising=False)
    assert jax_pools() == {}


@pytest.mark.parametrize("torch", [None, types.SimpleNamespace()])
def test_without_cuda(monkeypatch, torch):
    monkeypatch.setitem(sys.modules, "torch", torch)

    assert torch_pools() == {}


VERSIONS = [cupy_double.by_device, cupy_double.in_order]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_pools_of_cupy_by_device(monkeypatch, version):
    cupy = cupy_double.install(monkeypatch, version(Pool(70, 512), Pool(9, 10)))

    assert cupy_pools() == {0: Pool(70, 512), 1: Pool(9, 10)}
    assert not cupy.asked_driver


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pool_that_the_program_set_is_counted_beside_the_default_one(monkeypatch, version):
    cupy = cupy_double.install(monkeypatch, version(Pool(70, 512)))
    other = cupy.cuda.memory.MemoryPool(version(Pool(5, 100), Pool(1, 2)))
    cupy.cuda.get_allocator = lambda: other.malloc

    assert cupy_pools() == {0: Pool(75, 612), 1: Pool(1, 2)}


def test_managed_memory_and_allocators_of_others_are_no_pools_of_the_device(monkeypatch):
    cupy = cupy_double.install(monkeypatch, {0: cupy_double.DevicePool(Pool(7, 8))})
    managed = cupy_double.DevicePool(Pool(70, 512), cupy.cuda.malloc_managed)
    other = cupy.cuda.memory.MemoryPool({0: managed})
    cupy.cuda.get_allocator = lambda: other.malloc
    assert cupy_pools() == {0: Pool(7, 8)}
    cupy.cuda.get_allocator = lambda: cupy_double.DevicePool.total_bytes  # a plain function, as RMM's
    assert cupy_pools() == {0: Pool(7, 8)}


def test_a_pool_that_gives_blocks_back_between_the_readings_holds_what_it_used(monkeypatch):
    cupy_double.install(monkeypatch, {0: cupy_double.DevicePool(Pool(500, 20))})

    assert cupy_pools() == {0: Pool(500, 500)}


@pytest.mark.parametrize("made", [None, {}], ids=["as in CuPy 14", "as in CuPy 13"])
def test_a_pool_that_nobody_used_yet_makes_no_context(monkeypatch, made):
    cupy = cupy_double.install(monkeypatch, made)

    assert cupy_pools() == {}
    assert not cupy.asked_driver


def test_cupy_that_is_absent_or_being_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    assert cupy_pools() == {}
    cupy = cupy_double.install(monkeypatch, {})
    del cupy.get_default_memory_pool
    assert cupy_pools() == {}
    monkeypatch.delitem(sys.modules, "cupy.cuda.memory")
    assert cupy_pools() == {}


TOTAL, USED = 80_000, 30_000


def divide(parts=None, processes=None, **pools):
    held = {library: pool for library, pool in pools.items() if pool is not None}
    return (parts or GpuParts()).divide(TOTAL, USED, held, processes)


@pytest.mark.parametrize("torch", [None, Pool(500, 2000)])
@pytest.mark.parametrize("jax", [None, Pool(100, 9000)])
@pytest.mark.parametrize("cupy", [None, Pool(40, 300)])
@pytest.mark.parametrize(
    "processes",
    [
        None,
        Processes(None, 0, 300),
        Processes(12_000),
        Processes(12_000, 1000, 4000),
        Processes(0, 1000),
        Processes(1500),  # less than what torch holds: read before it
        Processes(29_000, 4000, 4000),  # more than is in use
    ],
)
def test_the_parts_add_up_whatever_is_known(torch, jax, cupy, processes):
    parts = divide(torch=torch, jax=jax, cupy=cupy, processes=processes)

    assert sum(parts.values()) == TOTAL
    assert all(value >= 0 for value in parts.values())


def test_what_is_not_used_or_not_known_has_no_part():
    assert divide() == {"free": 50_000, "unattributed": USED}
    assert set(divide(jax=Pool(1, 2))) == {"free", "jax_in_use", "jax_cached", "unattributed"}


def test_a_pool_of_each_library_is_no_other_pool():
    parts = GpuParts()
    divide(parts, processes=Processes(600))
    pools = {"torch": Pool(1000, 2000), "jax": Pool(100, 9000), "cupy": Pool(40, 300)}
    found = divide(parts, processes=Processes(600 + 2000 + 9000 + 300 + 70), **pools)
    assert (found["cupy_in_use"], found["cupy_cached"]) == (40, 260)
    assert (found["context"], found["other_pools"]) == (600, 70)


def test_pools_that_hold_more_than_is_in_use_have_no_parts_this_time():
    assert divide(torch=Pool(500, USED + 1)) == {}


def test_the_context_is_the_least_that_was_seen():
    parts = GpuParts()
    first = divide(parts, torch=Pool(10, 100), processes=Processes(700))
    assert (first["context"], first["other_pools"]) == (600, 0)
    later = divide(parts, torch=Pool(10, 5000), processes=Processes(6000))
    assert (later["context"], later["other_pools"]) == (600, 400)
    smaller = divide(parts, torch=Pool(10, 5000), processes=Processes(5500))
    assert (smaller["context"], smaller["other_pools"]) == (500, 0)


def test_a_process_that_holds_nothing_yet_has_no_context():
    parts = GpuParts()
    assert "context" not in divide(parts, processes=Processes(0, 1000))
    assert divide(parts, processes=Processes(700))["context"] == 700
