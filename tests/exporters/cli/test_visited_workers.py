"""What grows in workers gets the name that one of them has for it."""

from __future__ import annotations

import pytest

from heapwatch.cli.visited_workers import Worker, with_workers
from heapwatch.entering.refusals import CannotEnter
from heapwatch.explain.findings import Explanation, Finding, narrative
from heapwatch.explain.sites import Site


def finding(kind: str, path: str | None, **more: object) -> Finding:
    return Finding(kind, path, "list of bytearray", 100, 10**6, more.pop("pace", 60.0), 3e6, 0.9, **more)  # type: ignore[arg-type]


GROWN = finding("worker", None, pace=0.0, remedy="`heapwatch explain PID` of one of them", is_leak=True)
PARENT = Explanation("leak", 60.0, 12e6, 0.9, (GROWN,))
INSIDE = Explanation(
    "leak", 60.0, 3e6, 1.0, (finding("container", "env.trajectory", site=Site("envs.py", 31, "step")),)
)
BEFORE = [Worker(pid, 1.0, 100_000_000) for pid in (1, 2, 3, 4)]
AFTER = [Worker(1, 1.0, 110_000_000), Worker(2, 1.0, 112_000_000), Worker(3, 1.0, 100_100_000)]


def test_the_one_that_grew_most_is_visited_and_named_for_those_like_it() -> None:
    visited = []

    def visit(pid: int) -> Explanation:
        visited.append(pid)
        return INSIDE

    replaced = Worker(4, 99.0, 900_000_000)  # another process with its number
    found = with_workers(PARENT, BEFORE, [*AFTER, replaced], visit)
    assert visited == [2]
    assert found.verdict == "leak"
    text = narrative(found)
    assert "`env.trajectory` (list of bytearray in 2 of 4 workers" in text
    assert "filled at envs.py:31 in `step`" in text
    assert "heapwatch explain PID" not in text


@pytest.mark.parametrize(
    "parent",
    [
        Explanation("healthy", 60.0, 0.0, 0.0),
        Explanation("leak", 60.0, 1e6, 1.0, (finding("worker", None),)),
    ],
)
def test_nothing_is_visited_where_workers_do_not_grow_or_become_more(parent: Explanation) -> None:
    def visit(pid: int) -> Explanation:
        raise AssertionError(pid)

    assert with_workers(parent, BEFORE, AFTER, visit) is parent


def test_workers_that_stayed_as_they_were_are_not_visited() -> None:
    assert with_workers(PARENT, BEFORE, BEFORE, lambda pid: INSIDE) is PARENT


def test_a_worker_that_cannot_be_entered_leaves_the_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    def visit(pid: int) -> Explanation:
        raise CannotEnter("no")

    assert with_workers(PARENT, BEFORE, AFTER, visit) is PARENT
    assert capsys.readouterr().err == "heapwatch: cannot find what grows in the workers: no\n"
