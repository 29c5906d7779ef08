"""The pools of libraries on GPUs, and the parts of the memory of a GPU."""

import sys
import threading
import types
import urllib.request

import jax
import pytest

import heapwatch
from heapwatch.explain.memory import ProcessMemory
from heapwatch.measure import gpu
from heapwatch.measure.gpu import (
    DeviceMemory,
    GpuParts,
    NvmlSession,
    Pool,
    Processes,
    allow_capture,
    jax_pools,
)
from tests.support.nvml import RESERVED, Gpu, Nvml
from tests.support.waiting import wait_for


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


def test_the_pools_of_jax_by_device_and_no_backend_is_made(monkeypatch):
    jax.numpy.zeros(1)
    assert jax_pools() == {}  # one for a CPU has no pools
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
    backends(monkeypatch)
    assert jax_pools() == {}
    monkeypatch.delitem(sys.modules, "jax._src.xla_bridge", raising=False)
    assert jax_pools() == {}


TOTAL, USED, FREE = 80_000, 30_000, 50_000


def divide(parts=None, processes=None, **pools):
    held = {library: pool for library, pool in pools.items() if pool is not None}
    return (parts or GpuParts()).divide(DeviceMemory(TOTAL, USED, FREE, 0), held, processes)


@pytest.mark.parametrize("jax", [None, Pool(100, 9000)])
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
def test_the_parts_add_up_whatever_is_known(jax, processes):
    parts = divide(torch=Pool(500, 2000), jax=jax, processes=processes)

    assert sum(parts.values()) == TOTAL
    assert all(value >= 0 for value in parts.values())


def test_the_context_is_the_least_that_was_seen_once_the_process_holds_anything():
    parts = GpuParts()
    assert "context" not in divide(parts, processes=Processes(0, 1000))
    for held, in_process, context, beside in [
        (100, 700, 600, 0),
        (5000, 6000, 600, 400),
        (5000, 5500, 500, 0),
    ]:
        found = divide(parts, torch=Pool(10, held), processes=Processes(in_process))
        assert (found["context"], found["other_pools"]) == (context, beside)


class Driver:
    """The CUDA driver: while a graph is captured, a thread in the usual mode may not free another one."""

    def __init__(self):
        self.initialised = True
        self.relaxed = set()
        self.capture_lasts = self.asked = 0

    def cuThreadExchangeStreamCaptureMode(self, mode):
        self.asked += 1
        if not self.initialised:
            return 3
        if mode._obj.value == 2:
            self.relaxed.add(threading.get_ident())
        return 0

    def destroy(self):
        if self.capture_lasts and threading.get_ident() not in self.relaxed:
            self.capture_lasts = 0


def in_a_thread(*functions):
    def run():
        for function in functions:
            function()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


@pytest.fixture
def driver(monkeypatch):
    found = Driver()
    monkeypatch.setattr(gpu, "_driver", lambda: found)
    return found


def test_an_exempt_thread_ends_no_capture_of_another(driver):
    driver.initialised, driver.capture_lasts = False, 1
    in_a_thread(allow_capture, allow_capture)
    assert not driver.relaxed
    driver.initialised = True
    driver.asked = 0
    in_a_thread(allow_capture, allow_capture, allow_capture, driver.destroy)
    assert driver.asked == len(driver.relaxed) == driver.capture_lasts == 1
    driver.relaxed.clear()
    in_a_thread(driver.destroy)
    assert driver.capture_lasts == 0


def test_a_program_without_the_driver_loads_none():
    gpu._driver.cache_clear()
    in_a_thread(allow_capture)
    with pytest.raises(OSError, match="libcuda"):
        gpu._driver()


def test_every_thread_that_refers_to_objects_of_the_program_is_exempt(driver, monkeypatch, tmp_path):
    names = set()
    relax = driver.cuThreadExchangeStreamCaptureMode
    driver.cuThreadExchangeStreamCaptureMode = lambda mode: (
        names.add(threading.current_thread().name) or relax(mode)
    )
    with heapwatch.start("capture", port=0, interval=0.01, record=tmp_path / "run.jsonl") as watch:
        watch.step()
        watch.progress("generation")  # else the journal waits a quarter of a minute for its first point
        for page in ("metrics", "explain"):
            with urllib.request.urlopen(f"{watch.server.url}{page}") as response:
                response.read()
        wanted = {"heapwatch-ticker", "heapwatch-collect", "heapwatch-explain", "heapwatch-journal"}
        wait_for(lambda: wanted <= names)
    assert any("request" in name or "process" in name for name in names), names


def test_what_a_gpu_can_still_give_is_what_is_free_and_what_the_pools_cache():
    memory, library = ProcessMemory(clock=lambda: 0.0), Nvml(Gpu(0), Gpu(1))
    memory._nvml = NvmlSession(library, {})
    memory._read_gpu_left(0.0)
    assert memory.gpu_left == {}  # of a program without pools nothing is asked
    memory._pools = [{0: Pool(10, 300)}, {0: Pool(1, 6)}]
    memory._read_gpu_left(0.0)
    assert memory.gpu_left == {0: 79e9 - RESERVED + 290 + 5, 1: 78e9 - RESERVED}
    memory.close()
    assert library.initialised == 0
