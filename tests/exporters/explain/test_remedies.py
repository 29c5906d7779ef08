from __future__ import annotations

import gc

import pytest

from heapwatch.explain.places import KnownContainer
from heapwatch.explain.remedies import remedy_for, remedy_for_type
from heapwatch.explain.weigh import NO_TRAITS


@pytest.mark.parametrize(
    ("path", "kind", "class_inside", "suggested"),
    [
        ("trainer.history", "list", "builtins.float", "deque(maxlen=...)"),
        ("trainer.seen", "set", "builtins.str", "bounded structure"),
        ("model._forward_hooks", "dict", "builtins.function", "handle.remove()"),
        ("env.figures", "list", "matplotlib.figure.Figure", "plt.close(figure)"),
        ("errors", "list", "traceback", "keep the error's text"),
        ("_worker().work_queue", "list", "concurrent.futures.thread._WorkItem", "wait for results"),
        ("_feed().buffer", "deque", "bytes", "Queue(maxsize=...)"),
        ("rollouts._buffer", "deque", "builtins.bytes", "deque(maxlen=...)"),
        ("agent.replay_buffer", "deque", "builtins.tuple", "deque(maxlen=...)"),
    ],
)
def test_what_is_suggested_depends_on_the_container_and_its_items(
    path: str, kind: str, class_inside: str, suggested: str
) -> None:
    known = KnownContainer(path, kind, kind)  # type: ignore[arg-type]
    traits = NO_TRAITS._replace(classes=frozenset({class_inside}))
    assert suggested in (remedy_for(known, traits, None) or "")


def test_a_container_that_a_library_owns_has_that_librarys_remedy_or_none() -> None:
    def suggested(path: str, owner: str | None) -> str | None:
        return remedy_for(KnownContainer(path, "deque", "deque"), NO_TRAITS, None, owner)

    assert "timeout" in (suggested("gate._waiters", "asyncio.locks.Event") or "")
    assert "expunge_all" in (suggested("session.identity_map._dict", "sqlalchemy.orm.Session") or "")
    assert "keeps its first round" in (suggested("batches", "itertools.cycle") or "")
    assert suggested("client._pending", "some_library.Client") is None
    assert "maxlen" in (suggested("client._pending", None) or "")


def test_of_views_it_is_said_how_much_they_use_also_where_they_are_bounded() -> None:
    known = KnownContainer("crops", "deque", "deque")
    assert "128 B of each 80 kB" in (remedy_for(known, NO_TRAITS._replace(view=(128, 80_000)), 500) or "")


def test_of_tensors_with_their_graphs_only_the_graph_is_spoken_of() -> None:
    known = KnownContainer("losses", "list", "list")
    assert ".detach()" in (remedy_for(known, NO_TRAITS._replace(graph=True), None) or "")


def test_a_container_with_a_bound_needs_no_suggestion() -> None:
    assert remedy_for(KnownContainer("replay", "list", "list"), NO_TRAITS, 1000) is None


def test_a_container_that_has_passed_its_bound_is_to_be_cut_to_it() -> None:
    known = KnownContainer("replay", "deque", "deque")
    assert "limit of 1,000 items does not hold" in (remedy_for(known, NO_TRAITS, 1000, is_kept=False) or "")


def test_a_type_that_nothing_in_python_refers_to_is_to_be_freed_where_it_was_made() -> None:
    assert gc.isenabled()
    assert "free it" in (remedy_for_type(()) or "")
    assert remedy_for_type(("list",)) is None
    assert "`tee`" in (remedy_for_type(("itertools._tee",), "itertools._tee_dataobject") or "")
