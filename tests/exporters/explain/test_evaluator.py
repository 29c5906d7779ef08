"""How an explanation is made, and which containers are known to leak."""

from __future__ import annotations

import pytest

from heapwatch.explain.engine import Explainer
from heapwatch.explain.evaluator import growth_of
from heapwatch.explain.findings import Explanation, Finding
from heapwatch.explain.places import KnownContainer, Place
from heapwatch.judge.level import LevelSeries
from heapwatch.judge.memory import MemoryGrowth
from heapwatch.measure.introspection.roots import Root


@pytest.fixture
def explainer() -> Explainer:
    return Explainer(clock=lambda: 100.0)


def test_the_growth_of_a_leak_does_not_begin_anew(explainer):
    """What leaks by the judge moves the start of growth; what a cleanup gave back is no leak of before."""
    container = explainer.inventory.known["held"] = KnownContainer("held", "list", "list")
    for at in range(300):
        container.items.add(at, at)
    for since, rising in ((None, False), (60.0, True)):
        container.leaking_since = since
        assert growth_of(container, 297.0).rising is rising
    explainer.cleaned("collect", 500e6, 500e6)
    assert container.leaking_since is None


def test_a_container_that_leaks_is_known_to_leak_since_then(explainer):
    leak = Finding("container", "held", "list", 1, 1000, 60.0, 500.0, 1.0, is_leak=True)
    elsewhere = Finding("worker", "other", "list", 1, 1000, 60.0, 500.0, 1.0, is_leak=True)
    containers = explainer.inventory.known
    for name in ("held", "other"):
        containers[name] = KnownContainer(name, "list", "list")
    for findings, start, since in (((leak, elsewhere), 25.0, 25.0), ((leak,), 50.0, 25.0), ((), 60.0, None)):
        explainer.evaluator.remember_leaks(Explanation("leak", 60.0, 1e6, 1.0, findings), start)
        assert containers["held"].leaking_since == since
        assert containers["other"].leaking_since is None


def test_an_array_that_is_made_anew_each_time_is_one_finding(monkeypatch):
    """As by `np.append`. Its pages are touched, too, as all pages of a larger array."""
    explainer = Explainer(clock=lambda: 300.0)
    evaluator, levels = explainer.evaluator, MemoryGrowth(explainer.memory, 0.0, 300.0)
    array = explainer.inventory.known["log.values"] = KnownContainer("log.values", "array", "ndarray")
    array.places = [Place(None, None, Root("log.values", "log.values", lambda: b""), 1.0)]
    pages = KnownContainer("log.values", "ring", "ndarray, 90% touched", capacity=10_000)
    for at in range(300):
        array.items.add(at, 1e7 + at * 1e5)
        pages.items.add(at, 2_500 + at * 25)
    evaluator._touched.known["log.values", 1, 10_000] = pages
    monkeypatch.setattr(evaluator._touched, "read", lambda now: None)
    assert [candidate.known for candidate in evaluator._candidates(levels)] == [array]
    array.items = LevelSeries()
    assert [candidate.known for candidate in evaluator._candidates(levels)] == [pages]
