import collections
import functools
import gc
import math

import pytest

from heapwatch.runtime.sources import Source, SourceGone, count_of, is_accessor


class Trainer:
    def __init__(self):
        self.population = [1, 2, 3]

    def size(self):
        return len(self.population)


def test_an_accessor_is_called_on_each_read():
    trainer = Trainer()
    source = Source.of(lambda: trainer.population)
    trainer.population = [1]
    assert source.read() == [1]


@pytest.mark.parametrize(
    "make", [lambda: collections.deque([1]), lambda: {1}, lambda: [1, 2], lambda: {"a": 1}, Trainer]
)
def test_an_object_that_nobody_else_holds_is_gone(make):
    held = make()
    source = Source.of(held)
    assert source.read() is held
    del held
    with pytest.raises(SourceGone):
        source.read()


def test_a_list_lives_while_somebody_else_holds_it():
    trainer = Trainer()
    source = Source.of(trainer.population)
    assert source.read() == [1, 2, 3]
    trainer.population = []
    with pytest.raises(SourceGone):
        source.read()


def test_a_bound_method_does_not_keep_its_object():
    trainer = Trainer()
    source = Source.of(trainer.size)
    assert source.read() == 3
    del trainer
    gc.collect()
    with pytest.raises(SourceGone, match="size"):
        source.read()


def test_a_builtin_method_and_a_partial_are_accessors():
    items = [1, 2]
    assert Source.of(items.__len__).read() == 2
    assert Source.of(functools.partial(len, items)).read() == 2


def test_a_path_is_followed_again():
    trainer = Trainer()
    source = Source.of("population.__class__.__name__", root=lambda: trainer)
    assert source.read() == "list"
    trainer.population = ()
    assert source.read() == "tuple"


@pytest.mark.parametrize("path", ["", "a..b", "population[0]"])
def test_a_path_that_is_none_is_refused(path):
    with pytest.raises(ValueError, match="not an attribute path"):
        Source.of(path, root=object)


def test_a_path_without_a_root_says_what_to_set():
    with pytest.raises(ValueError, match=r"watch\.root"):
        Source.of("population")


def test_a_callable_object_is_an_object_and_no_accessor():
    class Network:
        def __call__(self):
            raise AssertionError("never called")

    network = Network()
    assert not is_accessor(network)
    assert Source.of(network).read() is network


@pytest.mark.parametrize(("value", "count"), [([1, 2], 2), (7, 7.0), (2.5, 2.5), ({}, 0), (range(3), 3)])
def test_counts(value, count):
    assert count_of(value) == count


@pytest.mark.parametrize("value", [-1, math.nan, 10**400, "seven", None, True])
def test_what_is_no_count_is_refused(value):
    with pytest.raises((TypeError, ValueError, OverflowError)):
        count_of(value)
