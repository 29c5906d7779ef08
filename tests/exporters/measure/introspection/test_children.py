"""What is read in a child process: the objects that a manager keeps, and the line that fills something."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable
from types import CodeType
from typing import Any

import pytest

from heapwatch.measure.introspection.attributes import Gone
from heapwatch.measure.introspection.roots import calling_line, hosted_root
from tests.support.walking import inventory_of


class Server:
    def __init__(self, hosted: dict[str, Any]) -> None:
        self.id_to_obj = hosted


def test_what_a_manager_keeps_is_named_by_the_manager(monkeypatch):
    kept: dict[int, int] = {1: 2}
    server = Server({"7f": (kept, {"get"}, None)})
    monkeypatch.setattr(multiprocessing.current_process(), "_manager_server", server, raising=False)
    assert hosted_root().read() == [kept]
    known = inventory_of([]).known["multiprocessing.Manager()[*]"]
    assert (known.kind, known.type_name) == ("dict", "dict")


def test_other_processes_keep_nothing_for_others():
    with pytest.raises(Gone):
        hosted_root().read()


def library(name: str, text: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(compile(text, f"{sys.prefix}/lib/{name}", "exec"), namespace)
    return namespace


@pytest.mark.parametrize(
    ("between", "seen"), [("site-packages/other.py", True), ("multiprocessing/process.py", False)]
)
def test_the_line_that_starts_a_process_fills_nothing_in_it(between, seen):
    fill: Callable[..., None] = library("site-packages/store.py", "def fill(wait): wait()")["fill"]
    start: Callable[..., None] = library(between, "def start(fill, wait): fill(wait)")["start"]
    ready, go_on = threading.Event(), threading.Event()

    def run() -> None:
        def wait() -> None:
            ready.set()
            go_on.wait(10)

        start(fill, wait)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(10)
        code: CodeType = fill.__code__  # type: ignore[attr-defined]
        assert (calling_line({id(code)}) is not None) is seen
    finally:
        go_on.set()
        thread.join(10)
