import numpy as np
import pytest
import torch

from heapwatch.analysis.readings import Readings
from heapwatch.collectors.sizes import SizeCollector
from heapwatch.measure.sizing.deep_size import Size
from heapwatch.runtime.sources import Source


def held(obj):
    """A source that keeps its object."""
    return Source.of(lambda: obj)


@pytest.fixture
def sizes(failures):
    return SizeCollector(failures, interval=5.0)


def read(sizes):
    sizes.sample()
    return Readings(sizes.collect())


def test_deep_sizes_by_name(sizes):
    policy = torch.nn.Linear(100, 100)
    sizes.measure("policy.state_dict", Source.of(policy.state_dict))
    sizes.measure("stats", held({"returns": np.zeros(1000)}))
    found = read(sizes).by("trainer_object_size_bytes", "object")

    assert found["policy.state_dict"] == pytest.approx(40_400, abs=2000)
    assert found["stats"] == pytest.approx(8000, abs=500)


def test_the_error_bound_of_a_sampled_object(sizes):
    sizes.measure("lengths", held([bytes(at % 1000) for at in range(10_000)]))
    sizes.measure("weights", held(torch.zeros(1000)))
    found = read(sizes).by("trainer_object_size_error_bytes", "object")

    assert found["lengths"] > 0
    assert found["weights"] == 0


def test_one_that_fails_costs_its_own_series(sizes, failures):
    sizes.measure("bad", Source.of(lambda: 1 / 0))
    sizes.measure("good", held([1]))

    assert set(read(sizes).by("trainer_object_size_bytes", "object")) == {"good"}
    assert failures.counts["sizes"] == 1


def test_an_object_too_large_to_walk_has_no_series(sizes, failures, monkeypatch):
    monkeypatch.setattr(
        "heapwatch.measure.sizing.deep_size.deep_size.__kwdefaults__", {"samples": 64, "budget_seconds": 1e-6}
    )
    sizes.measure("tree", held([[[1.5 * at] for at in range(60)] for _ in range(60)]))

    assert read(sizes).by("trainer_object_size_bytes", "object") == {}
    assert failures.counts["sizes"] == 1


def test_memory_elsewhere_is_said_apart(sizes, tmp_path):
    sizes.measure("mapped", held(np.memmap(tmp_path / "array", dtype=np.uint8, mode="w+", shape=5000)))
    found = read(sizes)

    assert found.value("trainer_object_size_offheap_bytes", object="mapped", place="mapped") == 5000


def test_bytes_that_a_function_returns_are_taken_as_they_are(sizes, failures):
    sizes.measure("store", held(Size(bytes=3_000_000)))

    assert read(sizes).by("trainer_object_size_bytes", "object") == {"store": 3_000_000}
