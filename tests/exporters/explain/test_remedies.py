from __future__ import annotations

import gc
from typing import Any

import pytest

from heapwatch.explain.places import KnownContainer
from heapwatch.explain.remedies import remedy_for, remedy_for_type
from heapwatch.explain.weigh import NO_TRAITS


def suggested(path: str, kind: str, capacity: int | None = None, /, **about: Any) -> str:
    """The suggestion for a container; of `about` the owner and `is_kept` are no traits of its items."""
    others = {name: about.pop(name) for name in ("owner", "is_kept") if name in about}
    known = KnownContainer(path, kind, kind)  # type: ignore[arg-type]
    owner = others.pop("owner", None)
    return remedy_for(known, NO_TRAITS._replace(**about), capacity, owner, **others) or ""


@pytest.mark.parametrize(
    ("path", "kind", "class_inside", "remedy"),
    [
        ("trainer.history", "list", "builtins.float", "deque(maxlen=...)"),
        ("trainer.seen", "set", "builtins.str", "bounded structure"),
        ("model._forward_hooks", "dict", "builtins.function", "handle.remove()"),
        ("env.figures", "list", "matplotlib.figure.Figure", "plt.close(figure)"),
        ("errors", "list", "traceback", "keep the error's text"),
        ("_worker().work_queue", "list", "concurrent.futures.thread._WorkItem", "wait for results"),
        ("server.tasks", "dict", "_asyncio.Future", "add_done_callback"),
        ("_feed().buffer", "deque", "bytes", "Queue(maxsize=...)"),
        ("weakref.finalize._registry", "dict", "weakref._Info", "do not refer to the object"),
        ("rollouts._buffer", "deque", "builtins.bytes", "deque(maxlen=...)"),
        ("agent.replay_buffer", "deque", "builtins.tuple", "deque(maxlen=...)"),
    ],
)
def test_what_is_suggested_depends_on_the_container_and_its_items(path, kind, class_inside, remedy):
    assert remedy in suggested(path, kind, classes=frozenset({class_inside}))


@pytest.mark.parametrize(
    ("path", "owner", "remedy"),
    [
        ("gate._waiters", "asyncio.locks.Event", "timeout"),
        ("client._pending", "some_library.Client", ""),
        ("client._pending", None, "maxlen"),
    ],
)
def test_a_container_that_a_library_owns_has_that_librarys_remedy_or_none(path, owner, remedy):
    found = suggested(path, "deque", owner=owner)
    assert remedy in found
    assert bool(found) is bool(remedy)


def test_a_bound_that_holds_needs_no_suggestion_unless_its_items_keep_too_much():
    assert suggested("replay", "list", 1000) == ""
    assert "limit of 1,000 items does not hold" in suggested("replay", "deque", 1000, is_kept=False)
    assert "128 B of each 80 kB" in suggested("crops", "deque", 500, view=(128, 80_000))
    assert ".detach()" in suggested("losses", "list", graph=True)


def test_a_type_that_nothing_in_python_refers_to_is_to_be_freed_where_it_was_made():
    assert gc.isenabled()
    assert "free it" in (remedy_for_type(()) or "")
    assert remedy_for_type(("list",)) is None
