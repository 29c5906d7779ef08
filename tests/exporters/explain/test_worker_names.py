from __future__ import annotations

from typing import Any

import pytest

from heapwatch.explain.findings import Explanation, Finding, narrative
from heapwatch.explain.sites import Site
from heapwatch.explain.worker_names import Worker, grown_most, grows_in_workers, with_names


def finding(kind: str, path: str | None, rate: float, **more: Any) -> Finding:
    return Finding(kind, path, "list of bytearray", 100, 10**6, more.pop("pace", 60.0), rate, 0.8, **more)  # type: ignore[arg-type]


WHOLE = finding("worker", None, 12e6, pace=0.0, remedy="`heapwatch explain PID` of one of them", is_leak=True)
OWN = finding("container", "trainer.log", 3e6)
PARENT = Explanation("growing", 60.0, 15e6, 0.9, (WHOLE, OWN))
LEAK = finding("container", "env.trajectory", 2.9e6, site=Site("envs.py", 31, "step"), is_leak=True)
INSIDE = Explanation("leak", 60.0, 3e6, 1.0, (LEAK,))
FOUR = Worker(7, 4, 4)


def test_the_one_that_grew_most_stands_for_those_that_grew_like_it() -> None:
    before = {1: 100, 2: 100, 3: 100, 4: 100}
    assert grown_most(before, {1: 110, 2: 112, 3: 101, 9: 900}) == (2, 2)
    assert grown_most(before, {1: 100, 2: 90}) is None
    assert grown_most({}, {}) is None


def test_the_growth_of_the_workers_is_that_of_the_name_in_all_of_them() -> None:
    found = with_names(PARENT, INSIDE, FOUR)
    first, own = found.findings
    assert (first.kind, first.path, first.is_leak) == ("worker", "env.trajectory", True)
    assert first.bytes_per_minute == pytest.approx(11.6e6)
    assert first.share == pytest.approx(0.8 * 11.6 / 12)
    assert own is OWN
    assert found.verdict == "leak"
    text = narrative(found)
    assert "`env.trajectory` (list of bytearray in 4 of 4 workers" in text
    assert "filled at envs.py:31 in `step`" in text
    assert "heapwatch explain PID" not in text


def test_what_the_name_does_not_explain_stays_if_it_is_the_most() -> None:
    one = Explanation("healthy", 60.0, 1e6, 1.0, (finding("container", "env.cache", 1e6),))
    found = with_names(PARENT, one, FOUR)
    rates = {each.path: each.bytes_per_minute for each in found.findings if each.kind == "worker"}
    assert rates == {"env.cache": 4e6, None: 8e6}
    assert sum(each.share for each in found.findings if each.kind == "worker") == pytest.approx(0.8)
    assert found.verdict == "growing"


def test_names_never_explain_more_than_the_workers_grew() -> None:
    large = Explanation(
        "leak", 60.0, 90e6, 1.0, (finding("container", "env.trajectory", 90e6, is_leak=True),)
    )
    assert sum(one.bytes_per_minute for one in with_names(PARENT, large, FOUR).findings) == 15e6


@pytest.mark.parametrize(
    "parent",
    [
        Explanation("healthy", 60.0, 0.0, 0.0),
        Explanation("leak", 60.0, 1e6, 1.0, (finding("worker", None, 1e6),)),  # more and more processes
    ],
)
def test_nothing_is_named_where_workers_do_not_grow_or_become_more(parent: Explanation) -> None:
    assert grows_in_workers(parent) is None
    assert with_names(parent, INSIDE, FOUR) is parent


def test_a_worker_without_a_name_changes_nothing() -> None:
    native = finding("native", None, 3e6)
    assert with_names(PARENT, Explanation("growing", 60.0, 3e6, 0.0, (native,)), FOUR) is PARENT
