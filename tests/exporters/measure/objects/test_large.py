import gc

import numpy as np
import torch

from heapwatch.measure.objects.large import Large, large_objects

UNUSUAL = 31_000_000  # bytes: more than anything else in a test process


def found(kind):
    return [large for large in large_objects(UNUSUAL, most=1000) if large.type == kind]


def test_what_nobody_declared_is_found_whatever_holds_it():
    class Holder:
        __slots__ = ("inner",)

    before = len(found("ndarray")), len(found("Tensor")), len(found("bytes"))
    holder = Holder()
    holder.inner = {"frames": np.ones(UNUSUAL, dtype=np.uint8), "text": (b"\x01" * UNUSUAL,)}
    tensor = torch.ones(UNUSUAL // 4)
    assert (len(found("ndarray")), len(found("Tensor")), len(found("bytes"))) == tuple(n + 1 for n in before)
    assert tensor.numel()


def test_what_the_collector_does_not_track_is_found_in_tuples_and_dicts():
    before = len(found("bytes"))
    kept = [{"text": (b"\x01" * UNUSUAL, 7)}]
    gc.collect()  # which stops tracking the tuple and the dict
    kept *= 3
    assert len(found("bytes")) == before + 1
    assert kept


def test_views_count_once():
    kept = np.ones(UNUSUAL, dtype=np.uint8)
    views = [kept[1:], kept[2:].reshape(2, -1)]
    before = len(found("ndarray"))
    del views[:]
    assert len(found("ndarray")) == before


def test_tensors_of_one_storage_count_once():
    storage = torch.ones(UNUSUAL // 4)
    before = len(found("Tensor"))
    views = [storage.view(-1), storage[10:]]
    assert len(found("Tensor")) == before
    assert len(views) == 2


def test_a_long_list_counts_for_its_own_table():
    kept = [None] * (UNUSUAL // 8)
    assert any(UNUSUAL <= large.nbytes <= 1.2 * UNUSUAL for large in found("list"))
    assert len(kept)


def test_the_largest_come_first_and_no_more_than_asked_for():
    kept = [np.ones(UNUSUAL + size, dtype=np.uint8) for size in (0, 5_000_000, 2_000_000)]
    largest = large_objects(UNUSUAL, most=2)
    assert len(largest) == 2
    assert largest[0].nbytes >= largest[1].nbytes >= UNUSUAL + 2_000_000
    assert all(isinstance(large, Large) for large in largest)
    assert kept


def test_wrappers_without_a_storage_are_skipped():
    held = []

    def keep(row):
        held.append(row)
        found = large_objects(1)
        assert found
        return row * 2

    torch.func.jacrev(keep)(torch.ones(3))
    assert held
