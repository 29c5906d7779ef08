from types import SimpleNamespace

import pytest

from heapwatch_receiver.clock import Clock

MONTH = 30 * 86400


def resumed(wall: float) -> tuple[Clock, SimpleNamespace]:
    """A clock at steady second 100 that was stopped at a second of the wall clock, where it is 1000 now."""
    times = SimpleNamespace(wall=1000.0, monotonic=5.0)
    clock = Clock(lambda: times.wall, lambda: times.monotonic)
    clock.resume(steady=100, wall=wall)
    return clock, times


def test_wall_jumps_do_not_move_steady_time():
    clock, times = resumed(1000)
    times.wall, times.monotonic = -3e8, 7.0
    assert clock.steady() == 102


@pytest.mark.parametrize(("wall", "down"), [(940, 60), (3e9, 0), (-3e8, MONTH)])
def test_a_downtime_counts_neither_backwards_nor_for_years(wall, down):
    clock, _ = resumed(wall)
    assert clock.steady() == 100 + down
