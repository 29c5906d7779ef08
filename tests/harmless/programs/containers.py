"""Containers that grow, shrink, rotate and are replaced, with keys that watch who compares them."""

import array
import collections
import functools
import weakref


class Item(dict):
    """A record that can be referred to weakly."""


class Key:
    """A key that must be compared by the program alone."""

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return self.number % 7

    def __eq__(self, other):
        return isinstance(other, Key) and self.number == other.number


@functools.lru_cache(maxsize=50)
def cached(number):
    """Something that is cached."""
    return [number] * 10


def steps(held, dropped, watch):
    held.update(
        list=[], dict={}, set=set(), deque=collections.deque(maxlen=300), ordered=collections.OrderedDict(),
        counter=collections.Counter(), default=collections.defaultdict(list), keyed={}, cache=cached,
        chain=collections.ChainMap(), text=bytearray(), raw=array.array("d"), heap=collections.UserList(),
    )  # fmt: skip
    count = 0
    while True:
        count += 1
        item = Item(at=count, data=[count] * 5)
        dropped.append(weakref.ref(item))
        held["list"].append(item)
        held["dict"][f"name{count % 500}"] = item
        held["set"].add(count % 300)
        held["deque"].append((count, item))
        held["deque"].rotate(3)
        held["ordered"][count] = item
        held["counter"][count % 100] += 1
        held["default"][count % 90].append(item)
        held["keyed"][Key(count % 200)] = item
        held["text"] += b"x" * 50
        held["raw"].append(1.0)
        cached(count % 70)
        if count % 17 == 0:
            held["list"][:] = held["list"][-100:]
            held["ordered"].popitem(last=False)
            held["default"].clear()
        if count % 101 == 0:
            held["dict"] = dict(list(held["dict"].items())[:200])
            held["set"] = set(list(held["set"])[:50])
            held["keyed"].clear()
            held["ordered"].clear()
            held["text"].clear()
            del held["raw"][:]
            cached.cache_clear()
        if count % 1009 == 0:
            held["list"].clear()
            held["deque"].clear()
        held["nested"] = [[[item]] for _ in range(5)]
        yield
