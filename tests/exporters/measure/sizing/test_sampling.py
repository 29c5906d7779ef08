import random
from collections import OrderedDict, defaultdict, deque

import pytest

from heapwatch.measure.sizing.sampling import ContainerChanged, pick, positions, variance_of_mean


@pytest.mark.parametrize("length", [0, 64, 65, 12345])
def test_positions_increase_and_leave_the_random_numbers_of_the_program_alone(length):
    state = random.getstate()
    chosen = positions(length, 64)
    assert random.getstate() == state

    assert chosen == sorted(set(chosen))
    assert all(0 <= at < length for at in chosen)
    assert len(chosen) == min(length, 64)
    if length <= 64:
        assert chosen == list(range(length))
    else:
        assert (chosen[0], chosen[-1]) == (0, length - 1)
        assert all(any(at * 10 // length == part for at in chosen) for part in range(10))


@pytest.mark.parametrize("make", [list, tuple, deque, set, frozenset])
def test_picks_items_by_position(make):
    items = make(range(100, 200))
    assert pick(items, [0, 5, 99]) == [[list(items)[at]] for at in (0, 5, 99)]


@pytest.mark.parametrize("make", [dict, OrderedDict])
def test_picks_keys_with_values(make):
    assert pick(make((i, i * i) for i in range(100)), [0, 5, 99]) == [[0, 0], [5, 25], [99, 9801]]


def test_keys_with_code_of_their_own_are_not_looked_up():
    class Key:
        def __eq__(self, other):
            raise AssertionError("compared")

        def __hash__(self):
            return 12345 if not hasattr(self, "stored") else pytest.fail("hashed")

    keys = [1, "b", Key()]
    container = dict(zip(keys, "xyz", strict=True))
    keys[2].stored = True

    assert pick(container, [0, 2]) == [[1, "x"], [keys[2], "z"]]


def test_a_subclass_s_own_access_is_not_used_and_a_missing_key_is_not_made():
    class Counting(list):
        def __getitem__(self, at):
            raise AssertionError("read")

    assert pick(Counting("abc"), [1]) == [["b"]]
    container = defaultdict(list, {1: [2], 3: [4]})
    assert pick(container, [0, 1]) == [[1, [2]], [3, [4]]]
    assert len(container) == 2


def test_a_container_that_shrinks_is_reported():
    with pytest.raises(ContainerChanged, match="list kept changing"):
        pick([1, 2], [5])
    with pytest.raises(ContainerChanged, match="dict kept changing"):
        pick({1: 2}, [5])


def test_equal_values_have_no_variance_and_a_trend_does_not_inflate_it():
    assert variance_of_mean([3.0] * 64, 1000) == 0
    assert variance_of_mean([1.0, 5.0, 2.0], 3) == 0
    ramp = [float(at) for at in range(64)]
    shuffled = random.Random(2).sample(ramp, 64)
    assert variance_of_mean(ramp, 10_000) < variance_of_mean(shuffled, 10_000) / 100
