"""A program under a debugger: a trace function that reads and writes local variables."""

import sys
import weakref


class Item:
    """Something that a function holds."""


def _trace(frame, event, argument):
    frame.f_locals  # noqa: B018 - what a debugger does
    return _trace


def _work(item, count):
    first = [item]
    second = {"count": count}
    total = 0
    for number in range(20):
        total += number
        first.append(number)
    if len(first) != 21 or second["count"] != count or total != 190:
        raise AssertionError("a local variable changed")
    return first


def steps(held, dropped, watch):
    count = 0
    while True:
        count += 1
        item = Item()
        dropped.append(weakref.ref(item))
        sys.settrace(_trace if count % 3 else None)
        held["work"] = _work(item, count)
        sys.settrace(None)
        yield
