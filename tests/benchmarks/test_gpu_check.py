"""`make gpu-test` on doubles of NVML and torch, and what it says without a GPU."""

import os
import sys
import types

import pytest
import torch

from benchmarks import gpu_check, gpu_leaks
from benchmarks.gpu_check import Check
from heapwatch.collectors.gpu import GpuCollector
from heapwatch.measure.gpu import NvmlSession
from heapwatch.measure.process.process_tree import ProcessTree
from heapwatch.runtime.failures import Failures
from tests.exporters.collectors.test_gpu import Gpu, Nvml

GB, STEP = 10**9, 40_000_000


def memory(used):
    return types.SimpleNamespace(used=used, total=80 * GB, free=79 * GB - used, reserved=GB)


class Device:
    """A GPU on which this process, a child of it and a foreign one hold memory."""

    def __init__(self, monkeypatch, failures):
        self.allocated, self.cached, self.context = GB, 0, 500_000_000
        self.pool, self.worker, self.foreign = 0, 0, 3 * GB
        self.gpu = Gpu(0)
        self.library = Nvml(self.gpu)
        self.library.nvmlDeviceGetMemoryInfo = lambda *_: memory(sum(self.held().values()) + 100_000_000)
        cuda = types.SimpleNamespace(
            is_initialized=lambda: True,
            device_count=lambda: 1,
            get_allocator_backend=lambda: "native",
            memory_stats=lambda index: {
                "allocated_bytes.all.current": self.allocated,
                "reserved_bytes.all.current": self.allocated + self.cached,
            },
            get_device_properties=lambda index: types.SimpleNamespace(uuid="00000000"),
            set_sync_debug_mode=lambda mode: None,
            synchronize=lambda: None,
        )
        monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda, zeros=torch.zeros))
        tree = ProcessTree()
        tree.workers = lambda: [types.SimpleNamespace(pid=-7)]
        self.collector = GpuCollector(failures, tree, NvmlSession(self.library, {}))

    def held(self):
        own = self.allocated + self.cached + self.context + self.pool
        return {os.getpid(): own, -7: self.worker, -8: self.foreign}

    def collect(self):
        self.gpu.processes = self.held()
        return self.collector.collect()

    def grow(self, what):
        setattr(self, what, getattr(self, what) + STEP)


@pytest.fixture
def device(monkeypatch):
    return Device(monkeypatch, Failures())


@pytest.mark.parametrize(
    ("what", "component"),
    [
        ("allocated", {"0"}),
        ("pool", {"0 other_pools"}),
        ("worker", {"0 workers"}),
        ("foreign", {"0 other_processes"}),
        ("cached", set()),
        ("nothing", set()),
    ],
)
def test_each_leak_is_seen_in_its_part_and_in_no_other(device, what, component):
    device.nothing = 0
    assert gpu_leaks.components_that_leak(device.collect, lambda: device.grow(what)) == component


def test_what_waits_for_the_gpu_is_a_failure(device, monkeypatch):
    for says, failed in ((None, 0), ("called a synchronizing CUDA operation", 1)):

        def collect(says=says):
            if says:
                raise RuntimeError(says)
            return []

        check = Check()
        device.collector.collect = collect
        monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
        double = types.SimpleNamespace(
            cuda=sys.modules["torch"].cuda, zeros=lambda *_, **__: torch.zeros(10, requires_grad=True)
        )
        monkeypatch.setattr(gpu_check, "deep_size", lambda held: None)
        gpu_check.waiting(check, double, device.collector)
        assert check.failed == failed


def test_a_row_that_differs_or_is_absent_fails():
    check = Check()
    check.row("equal", 5, 5)
    check.row("near", 6, 5, 1)
    assert check.failed == 0
    check.row("far", 7, 5, 1)
    check.row("absent", None, 5, 100)
    assert check.failed == 2
    page = gpu_check.document(check, "H100", "2030-01-02")
    assert "on 2030-01-02, on H100" in page
    assert page.count("**FAIL**") == 2


def test_without_a_gpu_one_line_says_why(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu_check.main() == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("gpu-test needs a GPU: torch ")
    assert "not installed" in gpu_check.refusal(None)


@pytest.mark.parametrize(
    ("status", "lines", "failed"),
    [
        (0, ["4 passed", "5000"], 0),
        (0, ["4 passed", "0"], 1),  # on the CPU
        (1, ["1 failed", "5000"], 1),
        (1, ["Traceback"], 1),
        (-11, [], 1),
    ],
)
def test_an_adapter_is_good_if_its_tests_pass_and_use_the_gpu(monkeypatch, status, lines, failed):
    done = types.SimpleNamespace(returncode=status, stdout="".join(f"{line}\n" for line in lines))
    monkeypatch.setattr(gpu_check.subprocess, "run", lambda *_, **__: done)
    monkeypatch.setattr(gpu_check, "ADAPTERS", ("pytest",))
    check = Check()
    gpu_check.adapters(check)
    assert check.failed == failed
