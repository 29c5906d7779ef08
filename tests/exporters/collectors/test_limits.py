import pytest

from heapwatch.collectors.limits import LimitCollector


def samples(collector, name):
    return {
        tuple(sample.labels.values()): sample.value
        for family in collector.collect()
        for sample in family.samples
        if sample.name == name
    }


def test_limits_are_series_and_a_later_one_replaces_the_first():
    limits = LimitCollector("aggressive")
    limits.set_limits("memory", "", {"warning": 5e8})
    limits.set_limits("memory", "", {"warning": 1e9, "critical": 1.5e9, "emergency": None})
    limits.set_limits("bodies", "static", {"critical": 300})
    limits.set_growth_limits("memory", "trainer", {"minute": 20e6, "epoch": None})
    assert samples(limits, "trainer_limit") == {
        ("memory", "", "warning"): 1e9,
        ("memory", "", "critical"): 1.5e9,
        ("bodies", "static", "critical"): 300,
    }
    assert samples(limits, "trainer_growth_limit") == {("memory", "trainer", "minute"): 20e6}
    assert samples(limits, "trainer_limit_profile") == {("aggressive",): 1}
    assert samples(LimitCollector(), "trainer_limit_profile") == {("default",): 1}


def test_an_unknown_profile_is_refused():
    with pytest.raises(ValueError, match=r"allowed: default, walker, .*aggressive"):
        LimitCollector("reckless")


@pytest.mark.parametrize(
    ("resource", "component", "limits", "message"),
    [
        ("ram", "", {"warning": 1}, "allowed: memory, gpu_memory"),
        ("memory", "a\nb", {"warning": 1}, "component name"),
        ("memory", "", {"warning": None, "critical": None}, "at least one of warning, critical"),
        ("memory", "", {"warning": -1}, "above 0"),
        ("memory", "", {"warning": float("inf")}, "above 0"),
        ("memory", "", {"warning": "1GB"}, "must be a number"),
        ("memory", "", {"warning": 2, "critical": 1}, "must rise"),
    ],
)
def test_what_is_no_limit_is_refused(resource, component, limits, message):
    collector = LimitCollector()
    with pytest.raises(ValueError, match=message):
        collector.set_limits(resource, component, limits)
    assert samples(collector, "trainer_limit") == {}
