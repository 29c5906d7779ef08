"""Each program for a second: nothing crashes, raises, hangs or stays alive.

`make test-harmless` runs each for minutes.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.harmless.__main__ import FILES, has, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.mark.parametrize("file", FILES)
def test_programs_that_change_everything_are_not_harmed(file: str) -> None:
    need, names = FILES[file]
    if not has(need):
        pytest.skip(f"needs {need}")
    _run(file, names, "all")


@pytest.mark.parametrize(
    ("file", "names"),
    [("interpreter", ("forks",)), ("tensors", ("several_threads",))],
)
def test_programs_are_not_harmed_by_windows_alone(file: str, names: Sequence[str]) -> None:
    _run(file, names, "windows")


def _run(file: str, names: Sequence[str], who: str) -> None:
    code, output = run(file, names, who, seconds=1)
    assert code == 0, output[-6000:]
    assert all(f"{name}: " in output for name in names)
