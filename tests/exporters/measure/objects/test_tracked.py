"""What is listed of the objects that the collector tracks, and that no tuple is held while it is filled."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any
from weakref import KeyedRef, ref

import numpy as np
import pytest
import torch

from heapwatch.measure.introspection.layout import identity
from heapwatch.measure.objects.tracked import (
    Large,
    _each,
    _run,
    large_objects,
    referrers,
    referrers_of_tuples,
    tracked_objects,
    tracked_types,
    untracked_objects,
)
from tests.support.small_program import printed


class Item:
    pass


def made_while(look: Callable[[Item], object]) -> tuple[list[object], tuple[object, ...]]:
    """What `look` returns, called while a tuple is being filled, and the tuple."""
    held = []

    def items() -> Iterator[object]:
        item = Item()
        yield item
        held.append(look(item))
        yield from range(20)

    return held, tuple(items())


@pytest.mark.parametrize(
    "look",
    [
        lambda item: tracked_types(),
        lambda item: tracked_objects(),
        lambda item: tracked_objects({identity(Item), identity(list)}),
        lambda item: tracked_objects(generation=0),
        lambda item: list(untracked_objects(tracked_objects(), {identity(tuple), identity(int)})),
        lambda item: referrers(item),
        lambda item: referrers_of_tuples(item) or [item],
    ],
    ids=["types", "objects", "of types", "young", "untracked", "referrers", "referrers of tuples"],
)
def test_a_tuple_can_be_filled_while_objects_are_listed(look: Callable[[Item], object]) -> None:
    held, filled = made_while(look)
    assert held
    assert len(filled) == 21


def test_objects_are_those_of_the_collector_without_tuples() -> None:
    class Own:
        pass

    item, pair = Own(), (Own(), [])
    listed = tracked_objects()
    ids = set(map(id, listed))
    assert {id(item), id(pair[0]), id(pair[1])} <= ids
    assert tuple not in set(map(type, listed))
    listed.clear()
    assert [one is item for one in tracked_objects({identity(Own)})] == [True, False]
    assert abs(len(tracked_types()) - len(gc.get_objects())) < 100


@pytest.mark.parametrize("kind", [ref, KeyedRef])
def test_no_reference_is_held_whose_callback_the_program_is_rid_of(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `torch.compiler.reset` is: it drops the references, and what their callback would look for."""
    # A hook of an earlier test would stay in this process.
    monkeypatch.setattr("heapwatch.measure.objects.tracked.may_have_audit_hooks", lambda: False)
    item, seen, key = Item(), {1}, () if kind is ref else ("key",)
    held = kind(item, lambda _: seen.remove(1), *key)
    beside = Item()
    inside = [(kind(item, lambda _: seen.remove(1), *key), beside)]
    lists = [tracked_objects(), referrers(held.__callback__), referrers_of_tuples(beside)]
    assert any(one is inside for one in lists[-1])
    assert not any(isinstance(one, ref) for listed in lists for one in listed)


@pytest.fixture
def no_collection() -> Iterator[None]:
    """What tests before this one have left must not go meanwhile."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
def test_what_is_made_for_the_list_is_not_listed_and_nothing_is_kept() -> None:
    listed = len(tracked_objects())
    items = [Item() for _ in range(10)]
    assert len(tracked_objects()) == listed + len(items) + 1
    # The chain of calls is made of such objects.
    assert not any(type(one) is map for one in tracked_objects(generation=0)[-100:])
    before = [sys.getrefcount(item) for item in items]
    tracked_objects()
    tracked_objects({identity(Item), identity(list)})
    list(untracked_objects(tracked_objects(), {identity(int)}))
    referrers(items[0])
    referrers_of_tuples(items[0])
    assert [sys.getrefcount(item) for item in items] == before


def test_referrers_are_found_through_tuples() -> None:
    item, other = Item(), Item()
    holder: list[Any] = [(0, item)]
    direct = [other]
    assert [one for one in referrers_of_tuples(item) if type(one) is list] == [holder]
    assert [one for one in referrers(item) if type(one) is list] == []
    assert [one for one in referrers(other) if type(one) is list] == [direct]


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_runs_no_code_meanwhile_and_is_left_as_it_was(enabled: bool) -> None:
    ran: list[str] = []
    threshold = gc.get_threshold()
    gc.callbacks.append(lambda phase, info: ran.append(phase))
    try:
        gc.set_threshold(1)
        if not enabled:
            gc.disable()
        _run(*(_each(calls) for calls in (map(ran.append, "<"), map(list, [[]] * 50), map(ran.append, ">"))))
        assert gc.isenabled() is enabled
        with pytest.raises(ZeroDivisionError):
            _run(_each(map(divmod, [1], [0])))
        assert gc.isenabled() is enabled
    finally:
        gc.callbacks.pop()
        gc.set_threshold(*threshold)
        gc.enable()
    assert ran.index(">") == ran.index("<") + 1


TUPLES = """
import sys, threading, time
sys.setswitchinterval(5e-6)
sys.addaudithook(lambda event, arguments: time.sleep(1e-3) if event.startswith("gc.") else None)
from heapwatch.measure.objects.tracked import referrers_of_tuples, tracked_objects, untracked_objects
from heapwatch.measure.introspection.layout import identity
kept = [(at, []) for at in range(2000)]
common = [0]
ended = []

def look():
    while not ended:
        list(untracked_objects(tracked_objects(), {identity(int)}))
        tracked_objects({identity(list)})
        referrers_of_tuples(common)

def item(at):
    return common

thread = threading.Thread(target=look)
thread.start()
end = time.monotonic() + 3
try:
    while time.monotonic() < end:
        tuple(item(at) for at in range(12))
finally:
    ended.append(1)
    thread.join(60)
print("no tuple was disturbed")
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="not told before 3.11")
@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("", "False"),
        ("sys.addaudithook(lambda *args: None)", "True"),
        ("sys.setrecursionlimit(10**6)", "True"),
    ],
    ids=["no hook", "a hook", "the stack may grow too long to try"],
)
def test_an_audit_hook_is_noticed(before: str, expected: str) -> None:
    """In a process of its own, as a hook cannot be removed."""
    ask = "from heapwatch.measure.objects.tracked import may_have_audit_hooks; print(may_have_audit_hooks())"
    assert printed(f"import sys\n{before}\n{ask}") == expected


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info < (3, 11), reason="not told before 3.11")
def test_tuples_that_the_program_fills_are_not_referred_to_while_a_hook_runs() -> None:
    assert printed(TUPLES) == "no tuple was disturbed"


UNUSUAL = 31_000_000  # bytes: more than anything else in a test process


def found(kind):
    return len([large for large in large_objects(UNUSUAL, most=1000) if large.type == kind])


def test_what_nobody_declared_is_found_whatever_holds_it():
    class Holder:
        __slots__ = ("inner",)

    kinds = ("ndarray", "Tensor", "bytes")
    before = [found(kind) for kind in kinds]
    holder = Holder()
    in_tuples = [{"text": (b"\x01" * UNUSUAL, 7)}] * 3
    holder.inner = {"frames": np.ones(UNUSUAL, dtype=np.uint8), "text": in_tuples}
    tensor = torch.ones(UNUSUAL // 4)
    gc.collect()  # which stops tracking the tuple and the dict
    assert [found(kind) for kind in kinds] == [number + 1 for number in before]
    frames = holder.inner["frames"]
    views = [frames[:], frames.reshape(2, -1), tensor.view(-1), tensor.reshape(2, -1)]
    assert [found(kind) for kind in kinds] == [number + 1 for number in before]
    assert len(views) == 4


def test_the_largest_come_first_and_no_more_than_asked_for():
    kept = [np.ones(UNUSUAL + size, dtype=np.uint8) for size in (0, 5_000_000, 2_000_000)]
    largest = large_objects(UNUSUAL, most=2)
    assert len(largest) == 2
    assert largest[0].nbytes >= largest[1].nbytes >= UNUSUAL + 2_000_000
    assert all(isinstance(large, Large) for large in largest)
    assert kept


def test_wrappers_without_a_storage_are_skipped():
    held = []

    def keep(row):
        held.append(row)
        found = large_objects(1)
        assert found
        return row * 2

    torch.func.jacrev(keep)(torch.ones(3))
    assert held
