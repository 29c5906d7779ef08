from types import SimpleNamespace

from heapwatch.collectors.explanation import MOST_PATHS, ExplanationCollector
from heapwatch.explain.findings import Explanation, Finding
from heapwatch.explain.sites import Site
from heapwatch.judge.component import Component
from heapwatch.judge.memory import TimeLeft
from heapwatch.judge.trainer import Leak
from tests.support.exposed import value, values


def finding(number=0, **about):
    fields = {
        "kind": "container",
        "path": f"trainer.history{number}",
        "type": "list of dict",
        "items": 40,
        "bytes": 48_000_000,
        "items_per_minute": 40.0,
        "bytes_per_minute": 48e6,
        "share": 0.97,
        "site": Site("/home/somebody/train.py", 212, "collect"),
        "remedy": "`collections.deque(maxlen=...)`",
        "is_leak": True,
    }
    return Finding(**{**fields, **about})


def collected(explanation):
    return list(
        ExplanationCollector(
            SimpleNamespace(now=lambda: explanation, judged_at=5.0, spent_on={"walk": 0.5})
        ).collect()
    )


def test_a_growing_path_is_reported_with_its_bytes_line_and_remedy():
    families = collected(Explanation("leak", 60.0, 50e6, 0.97, (finding(),)))
    assert values(families, "trainer_growing_path_bytes", "path") == {"trainer.history0": 48_000_000}
    assert value(families, "trainer_growing_path_growth_bytes_per_minute", path="trainer.history0") == 48e6
    assert value(families, "trainer_growing_path_leak", site="train.py:212") == 1
    assert list(values(families, "trainer_growing_path_leak", "remedy")) == ["collections.deque(maxlen=...)"]
    assert value(families, "trainer_memory_growth_explained_ratio") == 0.97
    assert values(families, "trainer_memory_verdict", "verdict")["leak"] == 1
    assert sum(values(families, "trainer_memory_verdict", "verdict").values()) == 1


def test_what_leaks_is_a_series_by_resource_and_component():
    leaks = (
        Leak(Component("memory", "trainer"), "growth", 60e6, 2e9),
        Leak(Component("events", "death"), "bound", 0.0, 1300.0, 1000.0),
    )
    left = TimeLeft(600.0, 900.0)
    families = collected(Explanation("leak", 60.0, 60e6, 1.0, time_left=left, ends_on_gpu=True, leaks=leaks))
    assert value(families, "trainer_leak", resource="memory", component="trainer", reason="growth") == 1e6
    assert value(families, "trainer_leak", resource="events", component="death", reason="bound") == 0
    assert value(families, "trainer_judged_timestamp_seconds") == 5.0
    limit = {"bound": "least", "resource": "gpu_memory"}
    assert value(families, "trainer_memory_time_to_limit_seconds", **limit) == 600


def test_what_is_not_known_is_absent():
    families = collected(Explanation("healthy", 60.0, 0.0, 1.0, (finding(bytes=None, items=None),)))
    assert values(families, "trainer_growing_path_bytes", "path") == {}
    assert value(families, "trainer_memory_growth_explained_ratio") is None
    assert values(families, "trainer_leak", "resource") == {}
    assert values(families, "trainer_memory_time_to_limit_seconds", "bound") == {}


def test_paths_are_bounded_in_number_and_length():
    many = tuple(finding(number, path="x" * 500 + str(number)) for number in range(100))
    families = collected(Explanation("leak", 60.0, 50e6, 1.0, many))
    paths = values(families, "trainer_growing_path_items", "path")
    assert 1 <= len(paths) <= MOST_PATHS
    assert max(map(len, paths)) <= 120
