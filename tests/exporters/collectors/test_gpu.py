"""NVML by a double that raises the real library's exceptions, and answers as it was seen to on an H200."""

import os
import sys
import types

import jax
import pynvml
import pytest

from heapwatch.collectors.gpu import CompiledCollector, GpuCollector
from heapwatch.collectors.readings import Readings
from heapwatch.measure.gpu import NvmlSession
from heapwatch.measure.process.process_tree import ProcessTree
from tests.support.nvml import GB, RESERVED, Gpu, Nvml

FIELDS = {
    "memory": "trainer_gpu_memory_used_bytes",
    "utilization": "trainer_gpu_utilization_ratio",
    "temperature": "trainer_gpu_temperature_celsius",
    "power": "trainer_gpu_power_watts",
}


class Found(Readings):
    def parts(self, device="0"):
        """Bytes of the parts of a device."""
        samples = self._samples.get("trainer_gpu_memory_part_bytes", ())
        return {labels["part"]: value for labels, value in samples if labels["device"] == device}


@pytest.fixture
def read(failures):
    """Collects from a library; the environment says which devices are visible."""

    def reader(library, visible=None):
        environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
        collector = GpuCollector(failures, ProcessTree(), NvmlSession(library, environment))
        return lambda: Found(collector.collect())

    return reader


def test_all_fields_of_several_gpus(read, failures):
    found = read(Nvml(Gpu(0, processes={os.getpid(): int(3 * GB), 999_999: int(5 * GB)}), Gpu(1)))()
    for metric, first, second in [
        ("memory_used_bytes", GB, 2 * GB),
        ("memory_total_bytes", 80 * GB, 80 * GB),
        ("utilization_ratio", 0.5, 0.5),
        ("temperature_celsius", 40, 40),
        ("power_watts", 120.5, 120.5),
    ]:
        assert found.by(f"trainer_gpu_{metric}", "device") == {"0": first, "1": second}
    assert found.by("trainer_gpu_process_memory_bytes", "device") == {"0": 3 * GB}
    labels = found.labels("trainer_gpu_info")
    assert labels == {"device": "0", "uuid": "GPU-00000000", "name": "H200", "driver": "570.1"}
    assert not failures.counts


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(
    ("error", "counts"), [(pynvml.NVML_ERROR_NOT_SUPPORTED, False), (pynvml.NVML_ERROR_UNKNOWN, True)]
)
def test_a_field_that_is_not_offered_or_fails_drops_alone_and_a_failure_counts(
    read, failures, field, error, counts
):
    found = read(Nvml(Gpu(0, fails={field: error}), Gpu(1)))()

    assert set(found.by(FIELDS[field], "device")) == {"1"}
    assert all(len(found.by(FIELDS[other], "device")) == 2 for other in FIELDS if other != field)
    assert (failures.counts["gpu"] > 0) == counts


@pytest.mark.parametrize("where", ["all", "power"])
def test_a_gpu_that_falls_off_loses_its_series_alone(read, failures, where):
    gpus = Gpu(0), Gpu(1)
    library = Nvml(*gpus)
    collect = read(library)
    assert len(collect().by("trainer_gpu_power_watts", "device")) == 2
    gpus[0].fails[where] = pynvml.NVML_ERROR_GPU_IS_LOST
    found = collect()

    assert set(found.by("trainer_gpu_power_watts", "device")) == {"1"}
    assert found.by("trainer_gpu_memory_used_bytes", "device") == {"1": 2 * GB}
    assert failures.counts["gpu"] == 1
    gpus[0].fails.clear()
    assert len(collect().by("trainer_gpu_power_watts", "device")) == 2
    assert library.initialised == 1


def test_a_driver_that_restarts_is_found_again(read, failures):
    library = Nvml(Gpu(0))
    collect = read(library)
    assert collect().value("trainer_gpu_power_watts") == 120.5
    library.initialised = 0
    library.init_error = pynvml.NVML_ERROR_DRIVER_NOT_LOADED
    assert collect().value("trainer_gpu_power_watts") is None
    assert collect().value("trainer_gpu_power_watts") is None
    assert failures.counts["gpu"] == 2
    library.init_error = None
    assert collect().value("trainer_gpu_power_watts") == 120.5


@pytest.mark.parametrize(
    "error", [pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED, None]
)
def test_a_machine_without_nvml_or_its_package_is_said_once_and_no_failure(
    failures, monkeypatch, caplog, error
):
    library = Nvml()
    library.init_error = error
    monkeypatch.setitem(sys.modules, "pynvml", None)
    collector = GpuCollector(failures, ProcessTree(), NvmlSession(library if error else None, {}))
    with caplog.at_level("DEBUG", logger="heapwatch"):
        for _ in range(3):
            assert Readings(collector.collect()).by("trainer_gpu_memory_used_bytes", "device") == {}

    (said,) = [one.message for one in caplog.records if "no series of whole GPUs" in one.message]
    assert error or "nvidia-ml-py is not installed" in said
    assert not failures.counts


@pytest.mark.parametrize(
    ("visible", "used"),
    [("2,0", {"0": 3 * GB, "1": GB}), ("GPU-00000001", {"0": 2 * GB}), ("", {}), ("GPU-ffff", {})],
)
def test_visible_devices_are_numbered_as_cuda_does_and_one_that_is_not_there_counts(
    read, failures, visible, used
):
    found = read(Nvml(*map(Gpu, range(4))), visible)()
    assert found.by("trainer_gpu_memory_used_bytes", "device") == used
    assert set(found.by("trainer_gpu_info", "device")) == set(used)
    assert failures.counts["gpu"] == (visible == "GPU-ffff")


@pytest.mark.usefixtures("no_torch")
def test_a_mig_instance_is_found_by_its_uuid(read, failures):
    missing = dict.fromkeys(("utilization", "processes"), pynvml.NVML_ERROR_NOT_SUPPORTED)
    instance = Gpu(6, uuid="MIG-1234", fails=missing)
    found = read(Nvml(Gpu(0), mig=[instance]), "MIG-1234")()

    assert found.by("trainer_gpu_memory_used_bytes", "device") == {"0": 7 * GB}
    assert found.labels("trainer_gpu_info")["uuid"] == "MIG-1234"
    assert found.value("trainer_gpu_utilization_ratio") is None
    assert found.parts() == {"free": 73 * GB - RESERVED, "driver": RESERVED, "unattributed": 7 * GB}
    assert not failures.counts


class Cuda:
    """torch.cuda of a process with two GPUs, numbered the other way round than NVML does."""

    def __init__(self, initialised):
        self.initialised = initialised

    def is_initialized(self):
        return self.initialised

    def device_count(self):
        assert self.initialised, "asked before CUDA was initialised"
        return 2

    backend = "native"

    def get_allocator_backend(self):
        return self.backend

    def memory_stats(self, index):
        assert self.initialised, "asked before CUDA was initialised"
        return {
            "allocated_bytes.all.current": 1000 * (index + 1),
            "reserved_bytes.all.current": 4000 * (index + 1),
            "inactive_split_bytes.all.current": 500 * index,
        }

    def get_device_properties(self, index):
        return types.SimpleNamespace(uuid=f"{1 - index:08x}")


@pytest.fixture
def cuda(monkeypatch):
    """The CUDA of a program that uses it."""
    made = Cuda(initialised=True)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=made))
    return made


@pytest.fixture
def no_torch(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)


def test_the_allocator_of_an_initialised_cuda(read, cuda):
    collect = read(Nvml(Gpu(0), Gpu(1)))
    found = collect()
    assert found.by("trainer_gpu_memory_allocated_bytes", "device") == {"0": 1000, "1": 2000}
    assert found.by("trainer_gpu_memory_reserved_bytes", "device") == {"0": 4000, "1": 8000}
    assert found.by("trainer_gpu_memory_used_bytes", "device") == {"0": 2 * GB, "1": GB}
    assert found.by("trainer_gpu_memory_unusable_bytes", "device") == {"0": 0, "1": 500}

    cuda.backend = "cudaMallocAsync"  # it leaves the figures at zero
    found = collect()
    assert found.by("trainer_gpu_memory_unusable_bytes", "device") == {}
    assert found.by("trainer_gpu_memory_reserved_bytes", "device") == {"0": 4000, "1": 8000}


@pytest.mark.usefixtures("cuda")
def test_the_parts_of_each_device_add_up(read):
    gpus = [Gpu(index, processes={os.getpid(): 500_000, 999_999: 200_000}) for index in range(2)]
    collect = read(Nvml(*gpus))
    for device, used in (("0", 2 * GB), ("1", GB)):  # torch numbers them the other way round
        parts = collect().parts(device)
        assert sum(parts.values()) == 80 * GB
        assert parts["free"] == 80 * GB - used - RESERVED
        assert parts["other_processes"] == 200_000
    gpus[1].processes[os.getpid()] += 70_000  # another pool of this process grows
    assert collect().parts() == {
        "free": 78 * GB - RESERVED,
        "driver": RESERVED,
        "torch_in_use": 1000,
        "torch_cached": 3000,
        "context": 496_000,
        "other_pools": 70_000,
        "workers": 0,
        "other_processes": 200_000,
        "unattributed": 2 * GB - 770_000,
    }


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("what", ["processes", "memory"])
@pytest.mark.parametrize("error", [pynvml.NVML_ERROR_NO_PERMISSION, pynvml.NVML_ERROR_NOT_SUPPORTED])
def test_parts_add_up_without_processes_and_there_are_none_without_memory(read, failures, what, error):
    found = read(Nvml(*(Gpu(index, fails={what: error}) for index in range(2))))()
    known = {
        "free": 79 * GB - RESERVED,
        "driver": RESERVED,
        "torch_in_use": 2000,
        "torch_cached": 6000,
        "unattributed": GB - 8000,
    }
    assert found.parts("1") == (known if what == "processes" else {})
    assert not failures.counts


@pytest.mark.parametrize("torch", ["not initialised", "not imported"])
def test_cuda_is_never_initialised(read, monkeypatch, torch):
    module = types.SimpleNamespace(cuda=Cuda(initialised=False)) if torch == "not initialised" else None
    monkeypatch.setitem(sys.modules, "torch", module)
    found = read(Nvml(Gpu(0)))()

    assert found.by("trainer_gpu_memory_allocated_bytes", "device") == {}
    assert found.value("trainer_gpu_memory_used_bytes") == GB


def programs():
    return Readings(CompiledCollector().collect()).value("trainer_jax_compiled_programs")


def test_each_new_shape_is_a_program_more():
    step = jax.jit(lambda values: values * 2 + 1)
    step(jax.numpy.zeros(3))
    before = programs()
    arrays = [jax.numpy.zeros(length) for length in range(4, 14)]
    made = programs()
    assert made > before
    for array in arrays:
        step(array)
    assert programs() == made + 10
    for array in arrays:
        step(array)
    assert programs() == made + 10
