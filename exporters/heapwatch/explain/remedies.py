"""Suggestions for leaks of a known pattern."""

from __future__ import annotations

import gc

from heapwatch.explain.inventory import KnownContainer
from heapwatch.explain.sites import Use
from heapwatch.explain.weigh import ItemTraits

# The end of a qualified class name found among the items, and the call that is missing.
_BY_TYPE = (
    ("matplotlib.figure.Figure", "`plt.close(figure)` after saving it"),
    ("FigureManager", "`plt.close(figure)` after saving it"),
    ("FigureManagerBase", "`plt.close(figure)` after saving it"),
    ("Handler", "`logger.removeHandler(handler)` and `handler.close()`"),
    ("SummaryWriter", "`writer.close()`"),
    ("Process", "`process.join()` and `process.close()`"),
    ("Thread", "end the thread and `thread.join()` it"),
    ("RemovableHandle", "keep the handle and call `handle.remove()`"),
    ("traceback", "keep the error's text, not the exception: its traceback holds every local variable"),
    ("Env", "`env.close()`, and drop it"),
    ("_WorkItem", "wait for results before more is submitted: the pool is slower than what feeds it"),
)
# Where a `multiprocessing.Queue` keeps what its process has put into it and the pipe has not taken.
_QUEUE_BUFFER = "_feed().buffer"


def remedy_for(
    known: KnownContainer, traits: ItemTraits, capacity: int | None, uses: list[Use]
) -> str | None:
    """A suggestion for a growing container, as code where possible; None if none is known."""
    if traits.graph:
        return "`.item()` for a number, `.detach()` for a tensor: each keeps the graph it was computed with"
    if capacity is not None:
        return None
    if "_hooks" in known.path.rpartition(".")[2]:
        return "keep the handle that registering returns and call `handle.remove()`"
    for ending, remedy in _BY_TYPE:
        if any(name.endswith(ending) for name in traits.classes):
            return remedy
    if known.path == _QUEUE_BUFFER:
        return "`Queue(maxsize=...)`: what takes from the queue is slower than what fills it"
    if traits.view:
        return "`.copy()` the part that is kept: a view keeps the whole array alive"
    if known.kind == "programs":
        return (
            "pad to few shapes, and pass what varies as arrays, not as `static_argnums`; `jax.clear_caches()`"
        )
    if known.kind == "cache":
        return "`functools.lru_cache(maxsize=...)`, and no cache on methods"
    if known.kind in ("list", "deque"):
        return "`collections.deque(maxlen=...)`"
    if known.kind == "dict":
        return "delete entries that are done, or bound it: `functools.lru_cache(maxsize=...)`, an LRU dict"
    if known.kind == "set":
        return "remove what is done, or keep a bounded structure"
    if known.kind in ("array", "tensor", "text", "frame_table"):
        return "keep the parts in a `collections.deque(maxlen=...)`, or write them to a file"
    return None


def remedy_for_type(holders: tuple[str, ...] | None) -> str | None:
    """A suggestion for a growing type that no known container holds; None if none is known."""
    if not gc.isenabled():
        return "`gc.enable()`, or `gc.collect()` between episodes: the collector is off and cycles stay"
    if holders == ():
        return "free it where it was made: nothing in Python refers to it"
    return None
