"""Instances whose dict is replaced, whose class changes, and classes whose attributes do."""

import weakref


class Plain:
    """An instance with a dict."""

    shared: list = []

    def __init__(self):
        self.history = []
        self.name = "plain"


class Other(Plain):
    """What a plain one turns into."""


class Slotted:
    """An instance with slots."""

    __slots__ = ("__weakref__", "items", "next")


class Watching:
    """An instance that would notice if an attribute was asked for in the usual way."""

    def __init__(self):
        object.__setattr__(self, "kept", [])

    def __getattr__(self, name):
        raise AssertionError(f"somebody asked for {name}")

    @property
    def items(self):
        raise AssertionError("somebody asked for items")


def steps(held, dropped, watch):
    held["plain"] = plain = Plain()
    held["watching"] = watching = Watching()
    count = 0
    while True:
        count += 1
        plain.history.append(count)
        plain.__dict__ = {"history": plain.history[-50:], f"more{count % 40}": [count]}
        plain.__class__ = Other if count % 2 else Plain
        setattr(plain, f"name{count % 100}", {"at": count})
        if count % 10 == 0:
            vars(plain).clear()
            plain.history = []
        Plain.shared = [count] * (count % 30)
        setattr(Other, f"extra{count % 20}", [count])
        if count % 20 == 0 and hasattr(Other, "extra0"):
            del Other.extra0
        slotted = Slotted()
        slotted.items = [count]
        slotted.next = held.get("slotted")
        held["slotted"] = slotted if count % 200 else None
        dropped.append(weakref.ref(slotted))
        if count % 3 == 0:
            del slotted.items
        object.__setattr__(watching, "kept", [*watching.kept[-20:], slotted])
        made = type(f"Made{count % 50}", (Plain,), {"held": [count]})
        held["made"] = [made() for _ in range(3)]
        dropped.append(weakref.ref(held["made"][0]))
        if count % 50 == 0:
            object.__setattr__(watching, "kept", [])
        yield
