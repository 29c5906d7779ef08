import pytest

from heapwatch_receiver.effect import judge

DEATHS = {"resource": "events", "component": "death"}
MEMORY = {"resource": "memory", "component": "trainer"}


def verdict(labels, *pairs, firing=True):
    sources = {str(number): pair for number, pair in enumerate(pairs)}
    return judge(labels, sources, still_firing=firing, helped_fraction=0.05).verdict


@pytest.mark.parametrize(
    ("labels", "before", "after", "expected"),
    [
        (MEMORY, {"memory": 2e9}, {"memory": 1e9}, "helped"),
        (MEMORY, {"memory": 2e9}, {"memory": 1.95e9}, "no_effect"),
        (MEMORY, {"memory": 2e9}, {"memory": 3e9}, "no_effect"),
        (MEMORY, {"memory": 2e9, "bodies": 900}, {"memory": 2e9, "bodies": 3}, "no_effect"),
        ({"resource": "bodies"}, {"memory": 2e9, "bodies": 900}, {"memory": 2e9, "bodies": 300}, "helped"),
        ({"resource": "bodies"}, {"bodies": 0}, {"bodies": 0}, "no_effect"),
        (DEATHS, {"events/death": 9, "events/birth": 9}, {"events/death": 9, "events/birth": 1}, "no_effect"),
        ({"resource": "events", "component": ""}, {"events/death": 9}, {"events/death": 1}, "helped"),
        ({"resource": "objects"}, {"memory": 2e9}, {"memory": 1e9}, "helped"),
    ],
)  # fmt: skip
def test_what_the_alert_is_about_must_fall(labels, before, after, expected):
    assert verdict(labels, (before, after)) == expected


def test_an_alert_that_ended_was_helped():
    assert verdict(MEMORY, ({"memory": 2e9}, {"memory": 2e9}), firing=False) == "helped"


def test_either_source_is_enough():
    assert verdict(MEMORY, ({"memory": 2e9}, {"memory": 2e9}), ({"memory": 2e9}, {"memory": 1e9})) == "helped"


def test_nothing_known_is_not_called_an_effect():
    assert verdict(MEMORY, ({}, {}), firing=None) == "unverified"
    assert verdict(MEMORY, ({"memory": 2e9}, {}), firing=None) == "unverified"
    assert verdict(MEMORY, ({"memory": 2e9}, {"memory": 2e9}), firing=None) == "no_effect"
