from __future__ import annotations

from typing import Any

import pytest

from heapwatch.explain.findings import Explanation, Finding, FindingKind, grows_in_workers, narrative
from heapwatch.explain.sites import Site
from heapwatch.machine.groups import Member
from heapwatch.machine.workers import Representative, grown_most, with_names


def finding(kind: FindingKind, path: str | None, rate: float, items: float = 60.0, **more: Any) -> Finding:
    """Something that grows by so many bytes and items a minute."""
    return Finding(kind, path, "list of bytearray", 100, 10**6, items, rate, 0.8, **more)


ALL_WORKERS = finding(
    "worker", None, 12e6, 0.0, remedy="`heapwatch explain PID` of one of them", is_leak=True
)
OWN = finding("container", "trainer.log", 3e6)
TRAINER = Explanation("growing", 60.0, 15e6, 0.9, (ALL_WORKERS, OWN))
TRAJECTORY = finding("container", "env.trajectory", 2.9e6, site=Site("envs.py", 31, "step"), is_leak=True)
WORKER = Explanation("leak", 60.0, 3e6, 1.0, (TRAJECTORY,))
FOUR = Representative(7, 4, 4)


def test_the_one_that_grew_most_stands_for_those_that_grew_like_it():
    one, two, three, four, new = (Member(pid, 0.0, "workers of train", True) for pid in (1, 2, 3, 4, 9))
    before = dict.fromkeys((one, two, three, four), 100)
    assert grown_most(before, {one: 110, two: 112, three: 101, new: 900}) == (2, 2, 3, "workers of train")
    assert grown_most(before, {one: 100, two: 90}) is None
    assert grown_most({}, {}) is None


def test_only_its_equals_count_as_like_it():
    actors = [Member(pid, 0.0, "Rollout of Ray job 01000000", True) for pid in (1, 2)]
    other = Member(3, 0.0, "Reward of Ray job 01000000", True)
    before = dict.fromkeys((*actors, other), 100)
    after = {actors[0]: 110, actors[1]: 109, other: 108}
    assert grown_most(before, after) == (1, 2, 2, "Rollout of Ray job 01000000")


def test_the_growth_of_the_workers_is_that_of_the_name_in_all_of_them():
    found = with_names(TRAINER, WORKER, FOUR)
    first, own = found.findings
    assert (first.kind, first.path, first.is_leak) == ("worker", "env.trajectory", True)
    assert first.bytes_per_minute == pytest.approx(11.6e6)
    assert first.share == pytest.approx(0.8 * 11.6 / 12)
    assert own is OWN
    assert found.verdict == "leak"
    text = narrative(found)
    assert "`env.trajectory` (list of bytearray in 4 of 4 workers, +240 items/min, 48.3 kB each" in text
    assert "filled at envs.py:31 in `step`" in text
    assert "heapwatch explain PID" not in text


def test_what_the_name_does_not_explain_stays_if_it_is_the_most():
    one = Explanation("healthy", 60.0, 1e6, 1.0, (finding("container", "env.cache", 1e6),))
    found = with_names(TRAINER, one, FOUR)
    rates = {each.path: each.bytes_per_minute for each in found.findings if each.kind == "worker"}
    assert rates == {"env.cache": 4e6, None: 8e6}
    assert sum(each.share for each in found.findings if each.kind == "worker") == pytest.approx(0.8)
    assert found.verdict == "growing"


@pytest.mark.parametrize(
    "parent",
    [
        Explanation("healthy", 60.0, 0.0, 0.0),
        Explanation("leak", 60.0, 1e6, 1.0, (finding("worker", None, 1e6),)),  # more and more processes
    ],
)
def test_nothing_is_named_where_workers_do_not_grow_or_become_more(parent):
    assert grows_in_workers(parent) is None
    assert with_names(parent, WORKER, FOUR) is parent
    unnamed = Explanation("growing", 60.0, 3e6, 0.0, (finding("native", None, 3e6),))
    assert with_names(TRAINER, unnamed, FOUR) is TRAINER
