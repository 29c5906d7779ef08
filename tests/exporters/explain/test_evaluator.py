"""How an explanation is made, and which containers are known to leak."""

from __future__ import annotations

import pytest

from heapwatch.explain.engine import Explainer
from heapwatch.explain.evaluator import growth_of
from heapwatch.explain.findings import Explanation, Finding
from heapwatch.explain.places import KnownContainer


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
