"""The rate of an example, and the clock of what it does."""

import pytest

from examples.common import command
from examples.common.command import Rate


@pytest.fixture
def slept(monkeypatch):
    """Seconds slept, by a clock that stands still otherwise."""
    times = []
    monkeypatch.setattr(command.time, "monotonic", lambda: 100.0 + sum(times))
    monkeypatch.setattr(command.time, "sleep", times.append)
    return times


def test_steps_come_at_the_rate(slept):
    steady = Rate(4.0)
    for _ in range(8):
        steady.wait()
    assert sum(slept) == pytest.approx(2.0)


@pytest.mark.parametrize("machine_is", ["fast", "slow"])
def test_the_clock_of_work_is_the_same_on_any_machine(slept, machine_is):
    steady = Rate(4.0)
    for _ in range(8):
        if machine_is == "slow":
            slept.append(60.0)
        steady.wait()
    assert steady.clock() == 2.0
