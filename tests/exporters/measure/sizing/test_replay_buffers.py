"""Replay buffers: what is stored in declared ones, and rings that are found in an object's attributes."""

from collections import deque, namedtuple
from typing import Any

import numpy as np
import pytest
import torch

from heapwatch.measure.sizing.replay_buffers import (
    Ring,
    attached_tensors,
    capacity_beside,
    contents_of,
    ring_of,
)

HEADERS = 1500  # bytes of a few Python objects around arrays


class SB3Buffer:
    """As Stable-Baselines3's ReplayBuffer lays itself out."""

    def __init__(self, rows, n_envs=1, optimize_memory_usage=False):
        self.buffer_size, self.n_envs, self.pos, self.full = rows, n_envs, 0, False
        self.observations = np.zeros((rows, n_envs, 8), dtype=np.float32)
        if not optimize_memory_usage:
            self.next_observations = np.zeros((rows, n_envs, 8), dtype=np.float32)
        self.rewards = np.zeros((rows, n_envs), dtype=np.float32)

    def size(self):
        return self.buffer_size if self.full else self.pos


class SB3DictBuffer(SB3Buffer):
    def __init__(self, rows):
        super().__init__(rows, optimize_memory_usage=True)
        self.observations = {name: np.zeros((rows, 1, 8), dtype=np.float32) for name in "ab"}


class TorchRLStorage:
    """As TorchRL's LazyTensorStorage: one block, and how far it is filled."""

    def __init__(self, max_size):
        self.max_size, self._filled, self._storage = max_size, 0, None

    def __len__(self):
        return self._filled


class TorchRLBuffer:
    def __init__(self, storage):
        self._storage = storage

    def __len__(self):
        return len(self._storage)


class ListMemory:
    def __init__(self, capacity, items=()):
        self.buffer, self.capacity = list(items), capacity


def test_a_preallocated_ring_counts_by_its_fill():
    buffer = SB3Buffer(1000, n_envs=2)
    whole = buffer.observations.nbytes * 2 + buffer.rewards.nbytes
    buffer.pos = 100
    stored, full = sizes(buffer, 200, 2000)
    assert full.bytes == pytest.approx(whole, abs=HEADERS)
    assert stored.bytes == pytest.approx(whole / 10, abs=HEADERS)
    buffer.full, buffer.pos = True, 3
    assert sizes(buffer, 2000, 2000)[0] == full


def sizes(buffer, items, capacity):
    """Size of what is stored and of the full buffer, which has so many items and may hold so many."""
    contents = contents_of(buffer)
    assert (contents.items, contents.capacity) == (items, capacity)
    return contents.size()


def test_a_ring_without_next_observations_and_one_with_dicts():
    lean, full = contents_of(SB3Buffer(1000, optimize_memory_usage=True)), contents_of(SB3Buffer(1000))
    assert full.size()[1].bytes - lean.size()[1].bytes == pytest.approx(32_000, abs=HEADERS)
    assert sizes(SB3DictBuffer(1000), 0, 1000)[1].bytes == pytest.approx(68_000, abs=HEADERS)


def test_a_block_is_filled_as_the_buffer_says_and_a_list_is_no_block():
    storage = TorchRLStorage(500)
    buffer = TorchRLBuffer(storage)
    assert sizes(buffer, 0, 500)[1] is None

    storage._storage, storage._filled = torch.zeros(500, 8), 50
    stored, full = sizes(buffer, 50, 500)
    assert full.bytes == pytest.approx(16_000, abs=HEADERS)
    assert stored.bytes == pytest.approx(1600, abs=HEADERS)

    storage._storage = [torch.zeros(100) for _ in range(50)]
    stored, full = sizes(buffer, 50, 500)
    assert not contents_of(buffer).allocated
    assert full.bytes == pytest.approx(10 * stored.bytes, rel=0.01)


class Sized:
    max_size = 20

    def __len__(self):
        return 4


class Raising:
    @property
    def buffer(self):
        raise RuntimeError("not now")

    @property
    def capacity(self):
        raise RuntimeError("not now")

    def __len__(self):
        return 3


@pytest.mark.parametrize(
    ("buffer", "items", "capacity"),
    [
        (ListMemory(10, range(50)), 50, 10),  # the outer object may know the capacity
        (np.zeros((5, 3)), 5, None),
        (torch.zeros(7), 7, None),
        (torch.tensor(1.0), 1, None),
        (Sized(), 4, 20),
        (Raising(), 3, None),
        ({}, 0, None),
        ([1, 2], 2, None),
        (deque(maxlen=10), 0, 10),
    ],
    ids=lambda value: type(value).__name__,
)
def test_items_and_capacity(buffer, items, capacity):
    _, full = sizes(buffer, items, capacity)
    assert (full is None) == (capacity is None or items == 0)


def test_what_is_no_buffer_is_named_also_one_that_is_its_own_inner_one():
    with pytest.raises(TypeError, match=r"a object is not a known kind of buffer: pass a sized container"):
        contents_of(object())
    memory = ListMemory(10)
    memory.buffer = memory
    with pytest.raises(TypeError, match="not a known kind of buffer"):
        contents_of(memory)


Step = namedtuple("Step", "state value")


class OnGpu(torch.Tensor):
    """Says that it lives on a GPU, which this machine need not have."""

    device = torch.device("cuda", 0)


WEIGHT = torch.zeros(3, requires_grad=True)


@pytest.mark.parametrize(
    ("stored", "attached"),
    [
        (deque(Step(torch.zeros(3), WEIGHT * at) for at in range(500)), (500, 500)),
        ([{"state": torch.zeros(3), "more": [torch.zeros(1)]} for _ in range(500)], (0, 0)),
        ([WEIGHT * 2, torch.zeros(1), 5], (1, 1)),
        ([], (0, 0)),
        ([torch.zeros(3).as_subclass(OnGpu) for _ in range(10)], (10, 0)),
    ],
    ids=["graphs", "detached", "both", "empty", "on a GPU"],
)
def test_attached_tensors_are_estimated_from_the_items(stored, attached):
    assert attached_tensors(contents_of(stored)) == attached


ROWS = 1000


def arrays(rows: int = ROWS) -> dict[str, Any]:
    return {"observations": np.zeros((rows, 250), np.float32), "rewards": torch.zeros(rows)}


@pytest.mark.parametrize(
    ("attributes", "filled"),
    [
        ({"capacity": ROWS, "pos": 250, "full": False}, 250),
        ({"buffer_size": ROWS, "pos": 250, "full": True}, ROWS),
        ({"max_size": ROWS, "ptr": 3, "size": 400}, 400),
        ({"memory_size": ROWS, "mem_cntr": 5 * ROWS}, ROWS),
    ],
)
def test_a_ring_is_known_by_its_arrays_and_its_position(attributes: dict[str, Any], filled: int) -> None:
    ring = ring_of(attributes | arrays())
    assert ring == Ring(filled, ROWS, ROWS * 250 * 4 + ROWS * 4)
    assert ring.held_bytes == ring.nbytes * filled / ROWS


@pytest.mark.parametrize("rows", [ROWS, 4 * ROWS])
def test_each_environment_has_rows_of_its_own(rows: int) -> None:
    ring = ring_of({"buffer_size": ROWS, "n_envs": 4, "pos": 10, "full": False} | arrays(rows))
    assert ring is not None
    assert (ring.filled, ring.rows) == (40, 4 * ROWS)


@pytest.mark.parametrize(
    "attributes",
    [
        {"pos": 250, "full": False} | arrays(),
        {"capacity": ROWS} | arrays(),
        {"capacity": ROWS, "pos": 250} | arrays(ROWS - 1),
        {"capacity": ROWS, "pos": 250, "rewards": np.zeros(ROWS)},
        {"capacity": ROWS, "pos": 250, "scalar": np.float32(1), "point": np.array(1.0)},
    ],
    ids=["no rows", "no position", "arrays of other lengths", "below a megabyte", "no rows in an array"],
)
def test_what_is_no_ring(attributes: dict[str, Any]) -> None:
    assert ring_of(attributes) is None


@pytest.mark.parametrize(
    ("attributes", "bound"),
    [
        ({"maxlen": 100, "_capacity": 1e6}, 100),
        ({"maxlen": 10, "_capacity": 1e6}, 1_000_000),
        ({"maxlen": 10, "limit": 0.5}, None),
        ({"_Cache__maxsize": 400e6, "_Cache__currsize": 20e6}, 1000),  # 400 kB an item
        ({"_Cache__maxsize": 400e6, "_Cache__currsize": 401e6}, None),
        ({"_maxsize": 2**31 - 1}, None),
        ({"max_bytes": 40e6}, 100),
        ({"max_bytes": 19e6}, None),
    ],
)
def test_the_lowest_bound_that_is_not_exceeded_holds(attributes: dict[str, Any], bound: int | None) -> None:
    assert capacity_beside(attributes, 50, 400e3) == bound
