import pytest

from heapwatch.collectors.explanation import MOST_PATHS, ExplanationCollector
from heapwatch.explain.findings import Explanation, Finding
from heapwatch.explain.sites import Site
from tests.exporters.exposed import value, values


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
        "steady": True,
    }
    return Finding(**{**fields, **about})


def collected(explanation):
    return list(ExplanationCollector(lambda: explanation, lambda: {"walk": 0.5}).collect())


def test_a_growing_path_is_reported_with_its_bytes_line_and_remedy():
    families = collected(Explanation("leak", 60.0, 50e6, 0.97, (finding(),)))
    assert values(families, "trainer_growing_path_bytes", "path") == {"trainer.history0": 48_000_000}
    assert value(families, "trainer_growing_path_growth_bytes_per_minute", path="trainer.history0") == 48e6
    assert value(families, "trainer_growing_path_leak", site="train.py:212") == 1
    assert list(values(families, "trainer_growing_path_leak", "remedy")) == ["collections.deque(maxlen=...)"]
    assert value(families, "trainer_memory_growth_explained_ratio") == 0.97
    assert values(families, "trainer_memory_verdict", "verdict")["leak"] == 1
    assert sum(values(families, "trainer_memory_verdict", "verdict").values()) == 1


@pytest.mark.parametrize(
    ("beside", "growth"),
    [
        ((), 50e6),
        # Pages that workers copy are no growth of the trainer's own.
        ((finding(5, kind="worker", path=None, bytes_per_minute=1e9),), 1.05e9),
        # Objects that stay between freed ones make malloc keep more than they hold.
        ((finding(5, kind="allocator", path=None, bytes_per_minute=1e9),), 1.05e9),
    ],
)
def test_leaks_with_a_name_are_added_up_for_the_rules(beside, growth):
    findings = (
        finding(share=0.4, bytes_per_minute=20e6),
        finding(1, kind="type", share=0.3, bytes_per_minute=15e6),
        finding(2, kind="native", share=0.3),
        finding(3, is_leak=False, share=0.2),
        finding(4, steady=False, share=0.2),
    )
    families = collected(Explanation("leak", 60.0, growth, 1.0, (*findings, *beside)))
    assert value(families, "trainer_named_leaks_growth_bytes_per_minute") == 35e6
    assert value(families, "trainer_named_leaks_share_ratio") == pytest.approx(0.7)


def test_what_is_not_known_is_absent():
    families = collected(Explanation("healthy", 60.0, 0.0, 1.0, (finding(bytes=None, items=None),)))
    assert values(families, "trainer_growing_path_bytes", "path") == {}
    assert value(families, "trainer_memory_growth_explained_ratio") is None
    for findings, growth in [
        ((), 0),
        ((finding(kind="level", path=None),), 0),
        ((finding(steady=False),), None),
    ]:
        families = collected(Explanation("leak", 60.0, 50e6, 1.0, findings))
        assert value(families, "trainer_named_leaks_growth_bytes_per_minute") == growth


def test_paths_are_bounded_in_number_and_length():
    many = tuple(finding(number, path="x" * 500 + str(number)) for number in range(100))
    families = collected(Explanation("leak", 60.0, 50e6, 1.0, many))
    paths = values(families, "trainer_growing_path_items", "path")
    assert 1 <= len(paths) <= MOST_PATHS
    assert max(map(len, paths)) <= 120
