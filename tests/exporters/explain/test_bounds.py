"""Buffers that programs bound by hand, and containers that only look like it."""

from __future__ import annotations

import queue
import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

import cachetools
import numpy as np
import pytest

from heapwatch.explain import describe as describing
from heapwatch.explain import statements
from heapwatch.explain.describe import Describer
from heapwatch.judge.level import NO_GROWTH, FloorGrowth
from tests.support.walking import inventory_of

LIMIT = 5_000
WINDOW = 300


class Buffer:
    """Keeps `items`."""

    made_of: type = list

    def __init__(self) -> None:
        self.items: Any = self.made_of()
        self.others: list[Any] = []
        self.steps = 5_000
        self.room = 1_000
        self.total = 0
        self.position = 0

    def add(self, item: Any) -> None:
        raise NotImplementedError


class Ring(Buffer):
    def add(self, item: Any) -> None:
        if len(self.items) < self.room:
            self.items.append(None)
        self.items[self.position] = item
        self.position = (self.position + 1) % self.room


class FifthAtOnce(Buffer):
    def add(self, item: Any) -> None:
        self.items.append(item)
        self.total += 1
        if self.total > self.room:
            del self.items[0 : int(self.total / 5)]
            self.total = len(self.items)


class OldestOut(Buffer):
    def add(self, item: Any) -> None:
        self.items.append(item)
        if len(self.items) > self.room:
            self.items.pop(0)


class OldestOutOfGlobal(Buffer):
    def add(self, item: Any) -> None:
        size = len(self.items)
        if size >= LIMIT:
            self.items.pop(0)
        self.items.append(item)


class ByKey(Buffer):
    made_of = dict

    def add(self, item: Any) -> None:
        self.items[self.total % self.room] = item
        self.total += 1


class NewestKeys(Buffer):
    made_of = dict

    def add(self, item: Any) -> None:
        self.items[self.total] = item
        self.items.pop(self.total - self.room, None)
        self.total += 1


class NewestKeysOfGlobal(Buffer):
    made_of = dict

    def add(self, item: Any) -> None:
        self.items[self.total] = item
        self.total += 1
        oldest = self.total - LIMIT
        if oldest in self.items:
            del self.items[oldest]


class OldKeysDeleted(Buffer):
    made_of = dict

    def add(self, item: Any) -> None:
        self.items[self.total] = item
        self.total += 1
        for key in list(self.items):
            if key < self.total - self.room:
                del self.items[key]


class KeptForAWhile(Buffer):
    made_of = deque

    def add(self, item: Any) -> None:
        now = time.monotonic()
        self.items.append((now, item))
        while self.items and self.items[0][0] < now - 300.0:
            self.items.popleft()


class KeptForASetting(Buffer):
    def add(self, item: Any) -> None:
        self.items.append((time.time(), item))
        for kept in list(self.items):
            if time.time() - kept[0] > WINDOW:
                self.items.remove(kept)


class NowAndThen(Buffer):
    """Adds an item when the last one is old."""

    def add(self, item: Any) -> None:
        if time.time() - self.total > WINDOW:
            self.items.append(item)


class GoodOnes(Buffer):
    """Adds an item if it is good, which bounds nothing."""

    def add(self, item: Any) -> None:
        score = item.size + 1_000
        if score > 100.0:
            self.items.append(item)


class LastOnes(Buffer):
    def add(self, item: Any) -> None:
        self.items.append(item)
        self.items = self.items[-self.room :]


class StepsOfEpisodes(Buffer):
    def add(self, item: Any) -> None:
        self.items.append([item] * 5)
        self.total += 5
        while self.total > self.steps:
            self.total -= len(self.items.pop(0))


class SideBySide(Buffer):
    def add(self, item: Any) -> None:
        self.others.append(item)
        self.items.append(item)
        if len(self.others) > self.room:
            self.others.pop(0)
            self.items.pop(0)


class Asked(Buffer):
    def full(self) -> bool:
        return len(self.others) >= self.room

    def add(self, item: Any) -> None:
        if self.full():
            self.others.pop(0)
            self.items.pop(0)
        self.others.append(item)
        self.items.append(item)


class Excess(Buffer):
    def add(self, item: Any) -> None:
        self.items.append(item)
        excess = len(self.items) - self.room
        if excess > 0:
            del self.items[:excess]


class Settings:
    def __init__(self) -> None:
        self.keep = 1_000


class FromSettings(Buffer):
    def __init__(self) -> None:
        super().__init__()
        self.settings = Settings()

    def add(self, item: Any) -> None:
        self.items.append(item)
        while len(self.items) > self.settings.keep:
            self.items.pop(0)


class Endless(Buffer):
    def add(self, item: Any) -> None:
        self.items.append(item)


class Warns(Buffer):
    def add(self, item: Any) -> None:
        self.items.append(item)
        if len(self.items) > self.room:
            print("it is long")


class OneOutForManyIn(Buffer):
    def add(self, item: Any) -> None:
        self.items += [item] * 10
        if len(self.items) > 50:
            self.items.pop(0)


class GrowsWithItsPosition(Buffer):
    def add(self, item: Any) -> None:
        self.position += 1
        if self.position > len(self.items):
            self.items.append(item)


class Normalizes(Buffer):
    def add(self, item: Any) -> None:
        self.items.append(item)
        for at in range(len(self.items)):
            self.items[at] = self.items[at] * 1.0


class CutAfterBatch(Endless):
    def learn(self) -> None:
        if len(self.items) > self.room:
            del self.items[: -self.room]


@dataclass
class Declared(Endless):
    items: list[Any] = field(default_factory=list)


class AtAnIndex(Buffer):
    """As TorchRL stores episodes."""

    def __init__(self) -> None:
        super().__init__()
        self.max_size = 1_000_000

    def store(self, cursor: int, item: Any) -> None:
        if cursor == len(self.items):
            self.items.append(item)
        else:
            self.items[cursor] = item

    def add(self, item: Any) -> None:
        self.store(len(self.items), item)


class OfUnknownLength(AtAnIndex):
    def store(self, cursor: int, item: Any) -> None:
        self.items.append(item)
        if len(self.items) > recent_length():
            self.items.pop(0)


def recent_length() -> int:
    return 1_000


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is said of the items of a buffer after some of them were added."""
    monkeypatch.setattr(describing, "user_code", list)

    def describe(
        buffer: Buffer, items: int = 120, path: str = "it.items", growth: FloorGrowth = NO_GROWTH
    ) -> Any:
        for at in range(items):
            buffer.add(np.full(3, at))
        inventory = inventory_of(buffer)
        inventory.lengths.read(1.0)
        return Describer(inventory).describe(inventory.known[path], growth)

    return describe


@pytest.mark.parametrize(
    ("kind", "bound"),
    [
        (Ring, 1_000), (FifthAtOnce, 1_000),
        (OldestOut, 1_000), (OldestOutOfGlobal, LIMIT), (ByKey, 1_000),
        (OldKeysDeleted, 1_000), (NewestKeys, 1_000), (NewestKeysOfGlobal, LIMIT),
        (LastOnes, 1_000), (StepsOfEpisodes, 1_000),
        (SideBySide, 1_000), (Asked, 1_000), (Excess, 1_000), (FromSettings, 1_000),
    ],
)  # fmt: skip
def test_a_buffer_that_is_bounded_by_hand_has_its_bound(described, kind, bound):
    found = described(kind())
    assert found.capacity == bound
    assert found.bounded


class Cached(Buffer):
    """Keeps arrays of 24 bytes in a cache of this class."""

    def __init__(self, cache: Any) -> None:
        super().__init__()
        self.items = cache

    def add(self, item: Any) -> None:
        self.items[item.tobytes()] = item


@pytest.mark.parametrize(
    ("cache", "span", "bound"),
    [
        (cachetools.LRUCache(24_000, getsizeof=lambda one: one.nbytes), 60, 1_000),
        (cachetools.LRUCache(1_000), 60, 1_000),
        (cachetools.FIFOCache(2**31), 60, None),
        (cachetools.TTLCache(2**31, 300), 240, 600),
        (cachetools.TTLCache(2**31, 300), 400, None),  # it is older than what it keeps
    ],
)
def test_a_cache_of_a_library_has_the_bound_that_it_counts_with(described, cache, span, bound):
    growth = replace(NO_GROWTH, per_second=2.0, span=span)
    found = described(Cached(cache), path="it.items._Cache__data", growth=growth)
    assert found.capacity == bound


@pytest.mark.parametrize("kind", [KeptForAWhile, KeptForASetting])
def test_what_is_removed_by_its_age_fills_until_it_is_that_old(described, kind):
    for span, bound in ((240, 600), (400, None)):
        found = described(kind(), growth=replace(NO_GROWTH, per_second=2.0, span=span))
        assert found.capacity == bound
        assert found.emptied == "trimmed", "until then it is given time"


def test_a_queue_that_is_as_long_as_a_number_can_be_has_no_bound(described):
    buffer = Endless()
    buffer.items = deque(maxlen=2**31 - 1)
    assert described(buffer).capacity is None


class Writer(Buffer):
    """Hands its items to a thread that is too slow."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: queue.Queue[np.ndarray] = queue.Queue()

    def add(self, item: np.ndarray) -> None:
        self.queue.put(item)


def test_a_queue_of_the_standard_library_is_not_emptied_where_it_is_set_up(described):
    """`Queue._init` assigns a new deque, once; the consumer takes single items."""
    found = described(Writer(), path="it.queue.queue")
    assert (found.capacity, found.emptied) == (None, "some")


@pytest.mark.parametrize(
    ("kind", "emptied"), [(AtAnIndex, "some"), (Ring, "some"), (OfUnknownLength, "trimmed")]
)
def test_a_known_bound_needs_no_patience_and_one_that_may_be_lower_does(described, kind, emptied):
    found = described(kind())
    assert found.bounded
    assert found.emptied == emptied


@pytest.mark.parametrize(
    "kind",
    [Endless, GoodOnes, NowAndThen, Warns, OneOutForManyIn, GrowsWithItsPosition, Normalizes, Declared],
)
def test_what_only_looks_like_it_has_none(described, kind):
    found = described(kind())
    assert found.capacity is None
    assert found.emptied in ("never", "some")


def test_a_container_past_what_its_code_compares_it_with_has_no_bound(described):
    buffer = OldestOut()
    buffer.room = 60
    buffer.items = [0] * 500
    found = described(buffer, items=1)
    assert not found.bounded
    assert found.emptied == "some"


@pytest.mark.parametrize(("floor", "bounded"), [(1_000, True), (1_060, False)])
def test_a_buffer_that_is_cut_after_each_batch_is_over_its_bound_until_then(described, floor, bounded):
    buffer = CutAfterBatch()
    buffer.items = [0] * 1_255
    assert described(buffer, items=1, growth=replace(NO_GROWTH, floor=floor)).bounded == bounded


def test_a_limit_is_unknown_where_the_source_is(described, monkeypatch):
    monkeypatch.setattr(statements, "source_of", lambda code: None)
    monkeypatch.setattr(statements, "_parsed", {})
    found = described(OldestOut())
    assert (found.capacity, found.site) == (None, None)
    assert found.emptied == "trimmed", "until it is known, it is given the time of a buffer"
