"""Visits in some states of a main thread.

`make test-harmless ARGS="--only entering"` tries all states, many times.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from heapwatch.entering.ptrace import IS_SUPPORTED
from tests.harmless.entering.__main__ import KILLED, run
from tests.harmless.entering.states import ALONE, ENDING, RETURNED
from tests.support.repository import python_path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not IS_SUPPORTED, reason="a process is entered on Linux on x86-64"),
]

# A state, how it is visited, and how long it waits at a time.
TRIED = [
    ("sleep", "once", 8.0),
    ("select without limit", "five", 3.0),
    ("join", "two", 8.0),
    ("readline", KILLED, 10.0),
    ("asyncio", "once", 10.0),
    ("C code that polls", "once", 6.0),
    ("C code that computes", "once", 1.0),
    ("busy", KILLED, 0.0),
    ("deep recursion", "five", 0.0),
    ("handlers that raise", "five", 0.0),
    ("forks", "two", 0.0),
    (RETURNED, "five", 0.0),
    (ALONE, "once", 0.0),
    (ENDING, "once", 3.0),
]


@pytest.mark.timeout(300)
def test_a_program_that_is_visited_ends_by_itself_with_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", python_path())
    with ThreadPoolExecutor(len(TRIED)) as pool:
        outcomes = list(pool.map(lambda one: run(sys.executable, *one), TRIED))
    harmed = [(one, outcome.harmed) for one, outcome in zip(TRIED, outcomes, strict=True) if outcome.harmed]
    assert harmed == []
    assert sum(outcome.visits for outcome in outcomes) > 20
    assert sum(outcome.killed for outcome in outcomes) > 20
