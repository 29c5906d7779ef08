"""Each program for a few seconds: nothing crashes, raises, hangs or stays alive.

`make test-harmless` runs each for minutes.
"""

from __future__ import annotations

import sys

import pytest

from tests.harmless.__main__ import PROGRAMS, READ_FAST, Run, has, run

pytestmark = pytest.mark.slow

SECONDS = 3
RUNS = [(name, "all") for name in PROGRAMS] + [(name, "readers") for name in READ_FAST]
RUNS += [(name, "windows") for name in ("forks", "several_threads")]


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("name", "who"), RUNS)
def test_a_program_that_changes_everything_is_not_harmed(name: str, who: str) -> None:
    _, need = PROGRAMS[name]
    if not has(sys.executable, need):
        pytest.skip(f"there is no {need}")
    code, output = run(Run(sys.executable, name, who), SECONDS)
    assert code == 0, output[-6000:]
