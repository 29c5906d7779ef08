from heapwatch_receiver.clock import Clock


class Times:
    def __init__(self):
        self.wall, self.monotonic = 1000.0, 5.0


def clock(times: Times) -> Clock:
    return Clock(lambda: times.wall, lambda: times.monotonic)


def test_wall_jumps_do_not_move_steady_time():
    times = Times()
    steady = clock(times)
    steady.resume(steady=100, wall=1000)
    times.wall, times.monotonic = -3e8, 7.0
    assert steady.steady() == 102


def test_a_downtime_counts():
    steady = clock(Times())
    steady.resume(steady=100, wall=940)
    assert steady.steady() == 160


def test_a_downtime_that_went_backwards_counts_as_none():
    steady = clock(Times())
    steady.resume(steady=100, wall=3e9)
    assert steady.steady() == 100


def test_a_downtime_of_years_counts_as_a_month():
    steady = clock(Times())
    steady.resume(steady=100, wall=-3e8)
    assert steady.steady() == 100 + 30 * 86400
