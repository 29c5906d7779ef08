from collections import deque

import numpy as np
import pytest
import torch

from heapwatch.collectors.buffers import BufferCollector, BufferSources
from heapwatch.collectors.readings import Readings
from heapwatch.runtime.sources import Source


def held(obj):
    """A source that keeps its object."""
    return Source.of(lambda: obj)


@pytest.fixture
def buffers(failures):
    return BufferCollector(failures, interval=5.0)


def read(buffers):
    buffers.sample()
    buffers.sizes.sample()
    return Readings([*buffers.collect(), *buffers.sizes.collect()])


def test_items_bytes_and_both_when_full_and_memory_elsewhere_apart(buffers, tmp_path):
    replay = deque([np.zeros(1000) for _ in range(50)], maxlen=200)
    array = np.memmap(tmp_path / "states", dtype=np.uint8, mode="w+", shape=(100, 50))
    weight = torch.zeros(2, requires_grad=True)
    buffers.measure("replay", BufferSources(Source.of(replay)))
    buffers.measure("mapped", BufferSources(Source.of(array)))
    buffers.measure("graphs", BufferSources(held(deque(weight * at for at in range(100)))))
    found = read(buffers)

    assert found.value("trainer_buffer_items", buffer="replay") == 50
    assert found.value("trainer_buffer_capacity_items", buffer="replay") == 200
    assert found.value("trainer_buffer_bytes", buffer="replay") == pytest.approx(400_000, rel=0.03)
    assert found.value("trainer_buffer_capacity_bytes", buffer="replay") == pytest.approx(1_600_000, rel=0.03)
    assert 0 < found.value("trainer_buffer_error_bytes", buffer="replay") < 12_000  # 32 of 50 were visited
    assert found.value("trainer_buffer_attached_tensors", buffer="replay") == 0
    assert found.value("trainer_buffer_offheap_bytes", buffer="mapped", place="mapped") == 5000
    assert found.value("trainer_buffer_bytes", buffer="mapped") < 2000
    assert found.value("trainer_buffer_attached_tensors", buffer="graphs") == 100


def test_what_is_declared_comes_first_and_what_is_unknown_has_no_series(buffers):
    buffers.measure("replay", BufferSources(held(list(range(100))), capacity=Source.constant(50)))
    buffers.measure("pool", BufferSources(held(list(range(100))), capacity=held(400)))
    buffers.measure("remote", BufferSources(items=held(20), capacity=Source.constant(100), nbytes=held(5000)))
    buffers.measure("unbounded", BufferSources(held([1, 2, 3])))
    buffers.measure("counted", BufferSources(items=held(7)))
    found = read(buffers)
    nbytes, when_full, items, bounds = (
        found.by(f"trainer_buffer_{name}", "buffer")
        for name in ("bytes", "capacity_bytes", "items", "capacity_items")
    )

    assert items == {"replay": 100, "pool": 100, "remote": 20, "unbounded": 3, "counted": 7}
    assert bounds == {"replay": 50, "pool": 400, "remote": 100}
    assert nbytes.keys() == {"replay", "pool", "remote", "unbounded"}
    assert when_full.keys() == {"replay", "pool", "remote"}
    assert when_full["pool"] == pytest.approx(4 * nbytes["pool"], rel=0.01)
    assert (nbytes["remote"], when_full["remote"]) == (5000, 25_000)
    assert found.value("trainer_buffer_attached_tensors", buffer="remote") is None


class Replay:
    def __init__(self):
        self.buffer = deque([1, 2], maxlen=5)


def test_one_that_fails_or_dies_costs_its_own_series(buffers, failures):
    replay, good = Replay(), Replay()
    buffers.measure("replay", BufferSources(Source.of(replay)))
    buffers.measure("bad", BufferSources(Source.of(lambda: 1 / 0)))
    buffers.measure("none", BufferSources(Source.of(lambda: object())))
    buffers.measure("good", BufferSources(Source.of(good)))
    assert set(read(buffers).by("trainer_buffer_items", "buffer")) == {"replay", "good"}
    assert failures.counts["buffers"] == 2
    del replay

    assert set(read(buffers).by("trainer_buffer_items", "buffer")) == {"good"}


def with_graph():
    return torch.ones(3, requires_grad=True).exp()


def test_a_buffer_has_the_path_of_its_container(failures):
    buffers = BufferCollector(failures, interval=5.0)
    buffers.measure("memory", BufferSources(Source.of("agent.memory", lambda: None)))
    assert buffers.paths() == {"memory": "agent.memory"}
