"""Arrays of objects, of texts and of records that are resized, viewed and replaced."""

import itertools
import weakref

import numpy as np

from tests.harmless.programs import Item

LARGE = 70_000


def arrays(held, dropped, watch):
    objects = np.empty(100, dtype=object)
    held["objects"] = objects
    texts = getattr(np.dtypes, "StringDType", None) if hasattr(np, "dtypes") else None
    for count in itertools.count(1):
        item = Item()
        dropped.append(weakref.ref(item))
        objects[count % len(objects)] = [item, count]
        if count % 50 == 0:
            # Without refcheck: with it, numpy refuses while anybody else refers to the array.
            # What it cuts off it does not release.
            objects.fill(None)
            objects.resize(50 + count % 200, refcheck=False)
        held["column"] = np.concatenate([held.get("column", np.zeros(1)), np.ones(10)])[-20_000:]
        held["views"] = [np.zeros((10, LARGE // 8))[at % 10] for at in range(3)]
        if texts is not None:
            held["texts"] = changed = np.array(["a" * (count % 40)] * 20, dtype=texts())
            changed[count % 20] = "b" * (count % 300)
        held["records"] = np.zeros(5, dtype=[("name", "U10"), ("at", "O")])
        held["records"]["at"][2] = item
        ring = held.setdefault("ring", _Ring())
        ring.add(count)
        held["masked"] = np.ma.masked_array(np.arange(5), mask=[0, 1, 0, 1, 0])
        objects[:] = objects[::-1]
        if count % 100 == 0:
            objects.fill(None)
        yield


class _Ring:
    def __init__(self):
        self.capacity, self.pos, self.full = 1000, 0, False
        self.states = np.zeros((1000, 200))

    def add(self, count):
        self.states[self.pos] = count
        self.pos += 1
        if self.pos == self.capacity:
            self.pos, self.full = 0, True
            self.states = np.zeros((1000, 200))
