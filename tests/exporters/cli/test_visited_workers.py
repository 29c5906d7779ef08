"""What grows in workers gets the name that one of them has for it."""

from __future__ import annotations

import pytest

from heapwatch.cli.visited_workers import Child, with_workers
from heapwatch.entering.refusals import CannotEnter
from heapwatch.explain.findings import Explanation, Finding

WHOLE = Finding("worker", None, "memory of the child processes", 4, 10**8, 0.0, 12e6, 1.0)
PARENT = Explanation("leak", 60.0, 12e6, 0.9, (WHOLE,))
LEAK = Finding("container", "env.trajectory", "list", 100, 10**6, 60.0, 3e6, 1.0, is_leak=True)
INSIDE = Explanation("leak", 60.0, 3e6, 1.0, (LEAK,))
BEFORE = {Child(pid, 1.0): 100 for pid in (1, 2, 3, 4)}
AFTER = {Child(1, 1.0): 110, Child(2, 1.0): 112, Child(3, 1.0): 101}


def test_the_one_that_grew_most_is_visited_and_named_for_those_like_it() -> None:
    visited = []

    def visit(pid: int) -> Explanation:
        visited.append(pid)
        return INSIDE

    replaced = Child(4, 99.0)  # another process with its number
    found = with_workers(PARENT, BEFORE, {**AFTER, replaced: 900}, visit)
    assert visited == [2]
    assert found.findings[0].path == "env.trajectory"
    assert found.findings[0].type == "list in 2 of 4 workers"


@pytest.mark.parametrize("after", [BEFORE, {}])
def test_workers_that_stayed_as_they_were_are_not_visited(after: dict[Child, int]) -> None:
    assert with_workers(PARENT, BEFORE, after, lambda pid: INSIDE) is PARENT


def test_a_worker_that_cannot_be_entered_leaves_the_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    def visit(pid: int) -> Explanation:
        raise CannotEnter("no")

    assert with_workers(PARENT, BEFORE, AFTER, visit) is PARENT
    assert capsys.readouterr().err == "heapwatch: cannot find what grows in the workers: no\n"
