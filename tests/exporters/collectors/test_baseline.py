"""The memory with which training began."""

from heapwatch.collectors.baseline import BaselineCollector


def test_the_baseline_is_the_memory_of_the_first_safe_point_and_stays():
    levels = iter([4_000_000_000, 9_000_000_000])
    baseline = BaselineCollector(lambda: next(levels))
    assert [family.samples for family in baseline.collect()] == [[]]
    baseline.note()
    baseline.note()
    (family,) = baseline.collect()
    assert [sample.value for sample in family.samples] == [4e9]
