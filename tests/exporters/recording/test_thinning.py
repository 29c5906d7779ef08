from heapwatch.recording.points import Point
from heapwatch.recording.thinning import Thinning


def cycle(number, unit="epoch"):
    return Point(time=float(number), resident_bytes=1.0, event="cycle", progress={unit: number})


def kept(thinning, points):
    return [point.progress.get("epoch") for point in points if thinning.keeps(thinning.index(point))]


def test_all_cycles_are_kept_at_first():
    assert kept(Thinning(), [cycle(number) for number in range(1, 6)]) == [1, 2, 3, 4, 5]


def test_each_doubling_keeps_half_as_many_cycles():
    thinning = Thinning()
    thinning.double()
    assert kept(thinning, [cycle(number) for number in range(1, 9)]) == [2, 4, 6, 8]
    thinning.double()
    assert kept(thinning, [cycle(number) for number in range(9, 17)]) == [12, 16]


def test_all_points_of_a_kept_cycle_are_kept_and_none_of_another():
    thinning = Thinning()
    thinning.double()
    points = [
        Point(time=0.0, resident_bytes=1.0, event="phase", progress={"epoch": number})
        for number in (1, 1, 2, 2)
    ]
    assert [thinning.keeps(thinning.index(point)) for point in points] == [
        point.cycle("epoch") % 2 == 0 for point in points
    ]


def test_the_largest_unit_counts():
    point = Point(time=0.0, resident_bytes=1.0, event="cycle", progress={"epoch": 7, "generation": 2})
    assert Thinning().index(point) == point.cycle("generation")


def test_the_start_is_always_kept():
    thinning = Thinning()
    for _ in range(10):
        thinning.double()
    assert thinning.keeps(
        thinning.index(Point(time=0.0, resident_bytes=1.0, event="start", progress={"epoch": 3}))
    )


def test_without_cycles_points_are_counted():
    thinning = Thinning()
    thinning.double()
    points = [Point(time=float(number), resident_bytes=1.0, event="sample") for number in range(4)]
    assert [thinning.keeps(thinning.index(point)) for point in points] == [False, True, False, True]
