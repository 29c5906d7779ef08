"""Suggestions for leaks of a known pattern."""

from __future__ import annotations

import gc
import sys

from heapwatch.explain.places import KnownContainer
from heapwatch.explain.weigh import ItemTraits
from heapwatch.text.numbers import size

# A class of the items or one of its bases, and the call that is missing.
_BY_TYPE = {
    "matplotlib.figure.Figure": "`plt.close(figure)` after saving it",
    "matplotlib.backend_bases.FigureManagerBase": "`plt.close(figure)` after saving it",
    "logging.Handler": "`logger.removeHandler(handler)` and `handler.close()`",
    "torch.utils.tensorboard.writer.SummaryWriter": "`writer.close()`",
    "multiprocessing.process.BaseProcess": "`process.join()` and `process.close()`",
    "threading.Thread": "end the thread and `thread.join()` it",
    "traceback": "keep the error's text, not the exception: its traceback holds every local variable",
    "_asyncio.Future": "drop each when it is done (`add_done_callback`); `asyncio.wait_for(..., timeout)`",
    "gymnasium.core.Env": "`env.close()`, and drop it",
    "concurrent.futures.thread._WorkItem": (
        "wait for results before more is submitted: the pool is slower than what feeds it"
    ),
}
_SLOW_CONSUMER = "what takes from it has ended, or is slower than what fills it"
# The class of a library that owns a container, the attribute, and the library's own way to shorten it.
_BY_OWNER = (
    ("asyncio.", "_waiters", "cancel those that wait, or `asyncio.wait_for(..., timeout)`"),
    ("asyncio.queues.", "_queue", f"`asyncio.Queue(maxsize=...)`: {_SLOW_CONSUMER}"),
    ("queue.", "queue", f"`queue.Queue(maxsize=...)`: {_SLOW_CONSUMER}"),
)
UNLINK = "`unlink()` each segment after the last process has closed it: `close()` keeps the memory"
REMOVE = "remove each file that nobody reads any more: files in /dev/shm are memory"
# Where IPython keeps the results of cells.
DROP_RESULTS = "`%reset -f out`, and a `;` at the end of a line whose value is not to be kept"
# Where a `multiprocessing.Queue` keeps what its process has put into it and the pipe has not taken.
_QUEUE_BUFFER = "_feed().buffer"


def remedy_for(
    container: KnownContainer,
    traits: ItemTraits,
    capacity: int | None,
    owner: str | None,
    *,
    is_kept: bool = True,
) -> str | None:
    """A suggestion for a growing container, as code where possible; None if none is certain.

    `owner` is the library's class whose instance owns the container; None if the user's code owns it.
    `is_kept` is whether it stays within its `capacity`.
    """
    if traits.graph:
        return "`.item()` for a number, `.detach()` for a tensor: each keeps the graph it was computed with"
    if traits.view:
        used, whole = map(size, traits.view)
        return f"`.copy()` the part that is kept: {used} of each {whole} are used, but all is kept"
    if capacity is not None:
        over = f"its limit of {capacity:,} items does not hold: remove items `while` there are too many"
        return None if is_kept else over
    if container.path == "Out" and "IPython" in sys.modules:
        return DROP_RESULTS
    if "_hooks" in container.path.rpartition(".")[2]:
        return "keep the handle that registering returns and call `handle.remove()`"
    by_type = next((remedy for name, remedy in _BY_TYPE.items() if name in traits.classes), None)
    if by_type is not None:
        return by_type
    if container.path == _QUEUE_BUFFER:
        return f"`Queue(maxsize=...)`: {_SLOW_CONSUMER}"
    if container.path == "weakref.finalize._registry":
        return "register functions that do not refer to the object: a bound method keeps it alive"
    if owner is not None:
        name = container.path.rpartition(".")[2]
        ways = (
            way for library, attribute, way in _BY_OWNER if owner.startswith(library) and attribute == name
        )
        return next(ways, None)
    if container.kind == "programs":
        return (
            "pad to few shapes, and pass what varies as arrays, not as `static_argnums`; `jax.clear_caches()`"
        )
    if container.kind == "cache":
        return "`functools.lru_cache(maxsize=...)`, and no cache on methods"
    if container.kind in ("list", "deque"):
        return "`collections.deque(maxlen=...)`"
    if container.kind == "dict":
        return "delete entries that are done, or bound their number"
    if container.kind == "set":
        return "remove what is done, or keep a bounded structure"
    if container.kind in ("array", "tensor", "text", "frame_table"):
        return "keep the parts in a `collections.deque(maxlen=...)`, or write them to a file"
    return None


def remedy_for_type(holders: tuple[str, ...] | None) -> str | None:
    """A suggestion for a growing type that no known container holds; None if none is known.

    `holders` is what refers to its instances; None if that is not known.
    """
    if not gc.isenabled():
        return "`gc.enable()`, or `gc.collect()` between episodes: the collector is off and cycles stay"
    return "free it where it was made: nothing in Python refers to it" if holders == () else None
