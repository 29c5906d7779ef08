import gc
import sys
import weakref
from unittest.mock import Mock

import pytest

from heapwatch.measure.process.memory import ResidentMemory
from heapwatch.runtime.release import empty_cuda_cache, release


class Node:
    def __init__(self):
        self.itself = self


def test_garbage_is_collected():
    gc.disable()
    try:
        garbage = weakref.ref(Node())
        release()
        assert garbage() is None
    finally:
        gc.enable()


def test_what_malloc_keeps_comes_back():
    ballast = [bytes(2000) for _ in range(100_000)]
    pins = ballast[::50]
    del ballast
    gc.collect()
    before = ResidentMemory().read()
    release()
    assert before - ResidentMemory().read() > 50_000_000
    assert len(pins) == 2000


@pytest.mark.parametrize(("available", "initialised"), [(True, True), (True, False), (False, False)])
def test_the_cuda_cache_is_emptied_where_cuda_is_in_use_and_cuda_is_not_started(
    monkeypatch, available, initialised
):
    torch = Mock()
    torch.cuda.is_available.return_value = available
    torch.cuda.is_initialized.return_value = initialised
    monkeypatch.setitem(sys.modules, "torch", torch)
    empty_cuda_cache()
    assert torch.cuda.empty_cache.called is initialised
    monkeypatch.delitem(sys.modules, "torch")
    empty_cuda_cache()
    assert "torch" not in sys.modules
