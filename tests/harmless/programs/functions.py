"""Generators, coroutines, closures, kept exceptions and the local variables of running functions."""

import asyncio
import contextvars
import weakref


class Item:
    """Something that a function holds."""


variable = contextvars.ContextVar("variable")


def _generate(item):
    kept = [item]
    while True:
        kept.append([len(kept)])
        if len(kept) > 50:
            del kept[1:]
        yield kept


def _nested(depth, item):
    local = [item, depth]
    if depth:
        return _nested(depth - 1, item)
    later = [len(local)]
    if later[0] != 2:
        raise AssertionError("a local variable changed")
    return lambda: (local, later)


async def _wait(item):
    kept = [item]
    await asyncio.sleep(0)
    return len(kept)


def _fail(item):
    local = [item] * 3
    raise ValueError(len(local))


def steps(held, dropped, watch):
    try:
        yield from _steps(held, dropped)
    finally:
        variable.set([])


def _steps(held, dropped):
    count = 0
    held["errors"] = []
    while True:
        count += 1
        item = Item()
        dropped.append(weakref.ref(item))
        generator = _generate(item)
        next(generator)
        held["generator"] = generator
        next(generator)
        held["closure"] = _nested(count % 15, item)
        held["closure"]()
        if count % 10 == 0:
            asyncio.run(_wait(item))
        waiting = _wait(item)
        held["coroutine"] = waiting
        waiting.close()
        try:
            _fail(item)
        except ValueError as error:
            held["errors"].append(error)
            del held["errors"][:-10]
        variable.set([item])
        held["context"] = contextvars.copy_context()
        namespace = {}
        exec(f"def made(x=[{count % 30}]):\n    y = [x]\n    return y", namespace)
        held["made"] = namespace["made"]
        namespace["made"]()
        generator.close()
        yield
