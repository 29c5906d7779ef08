import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

from heapwatch.measure.objects.instances import InstanceCounter
from heapwatch.measure.objects.tracked import large_objects


@pytest.fixture(scope="module", autouse=True)
def only_what_these_tests_make():
    """Hide the objects of other tests from the census; tests/conftest.py has hidden those of libraries."""
    gc.collect()
    gc.freeze()


class Agent:
    def __init__(self, number=0):
        self.number = number


class Slotted:
    __slots__ = ("number",)


@pytest.mark.parametrize("kind", [Agent, Slotted])
def test_counts_instances_made_before_and_after_and_copies(kind):
    agents = [kind() for _ in range(5)]
    census = InstanceCounter([kind])
    assert census.take() == {kind.__name__: 5}
    agents += [copy.copy(agents[0]), copy.deepcopy(agents[0]), pickle.loads(pickle.dumps(agents[0]))]
    assert census.take() == {kind.__name__: 8}
    del agents[2:]
    assert census.take() == {kind.__name__: 2}


def test_subclasses_count_for_every_watched_base():
    gc.collect()

    class Special(Agent):
        pass

    class Both(Special, Slotted):
        pass

    alive = [Special(), Both(), Slotted()]

    assert InstanceCounter([Agent, Special, Slotted]).take() == {"Agent": 2, "Special": 2, "Slotted": 2}
    assert len(alive) == 3


def test_nothing_is_kept_alive_changed_or_collected():
    before = dict(vars(Agent))
    gc.collect()
    gc.disable()
    try:
        agent = Agent()
        agent.itself = agent
        lost = weakref.ref(agent)
        census = InstanceCounter([Agent])
        del agent
        assert census.take() == {"Agent": 1}
        assert lost() is not None  # garbage, and still there: no collection ran
        gc.collect()
        assert lost() is None
        assert census.take() == {"Agent": 0}
    finally:
        gc.enable()
    assert dict(vars(Agent)) == before


def test_a_deleted_class_is_left_out_and_classes_of_one_name_are_distinguished():
    class Passing:
        pass

    other = type("Agent", (), {"__module__": "elsewhere"})
    alive = [other(), other()]
    census = InstanceCounter([Agent, other, Passing])
    census.count(Agent)
    assert census.take() == {"Agent": 0, "elsewhere.Agent": len(alive), "Passing": 0}
    gone = weakref.ref(Passing)
    del Passing
    gc.collect()
    assert gone() is None
    assert census.take() == {"Agent": 0, "elsewhere.Agent": len(alive)}


class Unhashable(type):
    def __eq__(cls, other):
        raise AssertionError("code of the program runs")

    __hash__ = None


def test_a_class_that_cannot_be_compared_or_hashed_is_counted_and_hinders_no_count():
    refusing = Unhashable("Refusing", (), {})
    alive = [refusing(), [refusing()], (refusing(),)]
    census = InstanceCounter([Agent, refusing, np.ndarray])
    found = census.take()
    assert (found["Agent"], found["Refusing"]) == (0, len(alive))
    assert large_objects(1)


class Holder:
    pass


def held_in_attributes():
    holders = [Holder() for _ in range(300)]
    for holder in holders:
        holder.weights = np.zeros(2)
        holder.more = {"bias": {"deep": np.zeros(1)}}
    return holders, 600


def shared_with_the_next():
    arrays = [np.zeros(3) for _ in range(2001)]
    return [(arrays[at], arrays[at + 1]) for at in range(2000)], 2001


def views():
    return [view for base in [np.zeros((10, 2)) for _ in range(50)] for view in base], 550


def count_arrays():
    return InstanceCounter([np.ndarray]).take()["ndarray"]


@pytest.mark.parametrize("make", [held_in_attributes, shared_with_the_next, views])
def test_arrays_which_the_collector_does_not_track(make):
    before = count_arrays()
    holder, count = make()
    gc.collect()  # leaves dicts and tuples of arrays untracked

    assert count_arrays() - before == count
    assert holder
