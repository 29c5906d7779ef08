import gc
import sys

from heapwatch.runtime import release
from heapwatch.runtime.release import empty_cuda_cache


class Node:
    def __init__(self):
        self.itself = self


def test_garbage_is_collected_and_counted():
    gc.collect()
    gc.disable()
    try:
        for _ in range(100):
            Node()
        assert release.release().collected_objects >= 100
    finally:
        gc.enable()


def test_what_malloc_keeps_comes_back():
    ballast = [bytes(2000) for _ in range(100_000)]
    pins = ballast[::50]
    del ballast
    released = release.release()
    assert released.allocator_bytes is not None
    assert released.allocator_bytes > 50_000_000
    assert len(pins) == 2000


class Cuda:
    """The part of torch.cuda that counts: 3 GB cached on each of two devices."""

    def __init__(self, initialized=True, available=True):
        self.reserved = 3_000_000_000
        self.initialized = initialized
        self.available = available

    def is_available(self):
        return self.available

    def is_initialized(self):
        return self.initialized

    def device_count(self):
        return 2

    def memory_reserved(self, device):
        return self.reserved

    def empty_cache(self):
        self.reserved = 1_000_000_000


class Torch:
    def __init__(self, **cuda):
        self.cuda = Cuda(**cuda)


def test_the_cuda_cache_is_emptied_where_cuda_is_in_use(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", Torch())
    assert empty_cuda_cache() == 4_000_000_000


def test_cuda_is_not_started_for_a_cleanup(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", Torch(initialized=False))
    assert empty_cuda_cache() is None
    monkeypatch.setitem(sys.modules, "torch", Torch(available=False))
    assert empty_cuda_cache() is None
    monkeypatch.delitem(sys.modules, "torch")
    assert empty_cuda_cache() is None
    assert "torch" not in sys.modules
