from __future__ import annotations

import gc
import threading
import weakref
from contextvars import ContextVar, copy_context
from queue import SimpleQueue
from typing import Any

import pytest

from heapwatch.measure.introspection import contexts
from heapwatch.measure.introspection.attributes import Gone
from heapwatch.measure.introspection.contexts import context_roots
from heapwatch.runtime.owned_reads import MainThread


class Episodes(list[int]):
    """A list that can be referred to weakly."""


request_log: ContextVar[Any] = ContextVar("request_log")


@pytest.fixture(autouse=True)
def names_in_this_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "is_written", lambda name: name == "request_log")


def here(read: Any) -> Any:
    return read()


def roots_in_a_context(value: Any) -> tuple[list[str], Any]:
    request_log.set(value)
    ContextVar("a b").set(value)
    (root,) = context_roots(here)
    return [root.label, root.name], root.read()


def test_a_value_is_found_under_the_name_of_its_variable_and_no_other() -> None:
    episodes = [1, 2]
    assert copy_context().run(roots_in_a_context, episodes) == (
        ["request_log.get()", "context request_log"],
        episodes,
    )
    assert context_roots(here) == []


def test_a_value_is_read_in_the_context_of_the_thread_that_answers() -> None:
    found: SimpleQueue[Any] = SimpleQueue()

    def look() -> None:
        (root,) = context_roots(lambda read: MainThread().ask(read, 5.0))
        found.put(root.read())

    def program() -> None:
        request_log.set([7])
        looking = threading.Thread(target=look)
        looking.start()
        while looking.is_alive():
            looking.join(0.01)

    copy_context().run(program)
    assert found.get(timeout=5.0) == [7]


def test_a_value_that_was_replaced_is_let_go() -> None:
    def program() -> None:
        first = Episodes()
        request_log.set(first)
        (root,) = context_roots(here)
        kept = weakref.ref(first)
        assert root.read() is first
        del first
        request_log.set(None)
        gc.collect()
        assert kept() is None
        assert root.read() is None

    copy_context().run(program)


def test_a_variable_that_is_not_set_and_a_thread_that_does_not_answer_are_gone() -> None:
    def program() -> Any:
        request_log.set([])
        return context_roots(here)[0]

    root = copy_context().run(program)
    with pytest.raises(Gone):
        root.read()
    assert context_roots(lambda read: None) == []
