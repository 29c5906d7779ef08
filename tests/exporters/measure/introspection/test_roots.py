"""Roots: local variables that are let go again, modules, what a manager hosts, and the calling line."""

from __future__ import annotations

import multiprocessing
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, ModuleType
from typing import Any

import pytest

from heapwatch.measure.introspection import roots
from heapwatch.measure.introspection.attributes import Gone
from heapwatch.measure.introspection.roots import (
    Root,
    calling_line,
    frame_roots,
    hosted_root,
    module_root,
    user_modules,
)
from tests.support.repository import REPOSITORY, SOURCES
from tests.support.walking import inventory_of


class Batch:
    pass


class Other:
    """A function that runs in another thread, and is told to go on."""

    def __init__(self) -> None:
        self.ready, self.go_on = threading.Event(), threading.Event()

    @contextmanager
    def running(self, function: Callable[[], None], name: str = "training") -> Iterator[Root]:
        """The root of its local variables, or of those of the function that it calls."""
        thread = threading.Thread(target=function, daemon=True)
        thread.start()
        assert self.ready.wait(10)
        (root,) = [root for root in frame_roots() if root.label == f"{name}()"]
        yield root
        self.go_on.set()
        thread.join(10)


@pytest.fixture
def other() -> Other:
    return Other()


@pytest.mark.parametrize("failed", [False, True], ids=["", "an exception keeps the function"])
def test_local_variables_of_other_threads_are_found_and_let_go(other: Other, failed: bool) -> None:
    refs: list[weakref.ref[Batch]] = []
    kept: list[Exception] = []
    dropped = threading.Event()

    def fails() -> None:
        raise ValueError

    def training() -> None:
        try:
            if failed:
                fails()
        except ValueError as error:
            kept.append(error)
        batch: Batch | None = Batch()
        refs.append(weakref.ref(batch))
        other.ready.set()
        other.go_on.wait(10)
        batch = None
        other.go_on.clear()
        dropped.set()
        other.go_on.wait(10)

    with other.running(training) as root:
        found = root.read()
        assert type(found["batch"]) is Batch
        assert found["refs"] is refs
        found.clear()
        other.go_on.set()
        assert dropped.wait(10)
        assert refs[0]() is None
    with pytest.raises(Gone):
        root.read()


def test_a_snapshot_that_the_program_took_is_left_as_it_is(other: Other) -> None:
    taken: list[dict[str, object]] = []

    def training() -> None:
        batch = Batch()
        taken.append(locals())
        other.ready.set()
        other.go_on.wait(10)
        del batch

    with other.running(training) as root:
        root.read()
        assert type(taken[0]["batch"]) is Batch


@pytest.mark.parametrize("local", [True, False])
def test_the_variables_of_a_function_that_is_traced_stay(other: Other, local: bool) -> None:
    ended: list[str] = []

    def traced(batch: str) -> None:
        ended.append(batch)

    def training() -> None:
        def trace(frame: FrameType, event: str, arg: object) -> object:
            if frame.f_code is traced.__code__ and not other.go_on.is_set():
                other.ready.set()
                other.go_on.wait(10)  # as a debugger that waits for a command
            return trace if local else None

        sys.settrace(trace)
        traced("kept")
        sys.settrace(None)

    with other.running(training, "traced") as root:
        assert root.read()["batch"] == "kept"
    assert ended == ["kept"]


def test_modules_of_a_library_and_every_package_of_the_wheel_are_not_the_users() -> None:
    assert __name__ in user_modules()
    assert "json" in sys.modules
    assert "json" not in user_modules()
    assert not any(name.startswith("heapwatch") for name in user_modules())
    packages = {one.parent.name for folder in SOURCES for one in (REPOSITORY / folder).glob("*/__init__.py")}
    assert packages == set(roots._OWN_PACKAGES)


def test_what_is_in_a_modules_place_is_no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "in_its_place", object())  # type: ignore[arg-type]
    with pytest.raises(Gone):
        module_root("in_its_place").read()
    monkeypatch.setitem(sys.modules, "in_its_place", ModuleType("in_its_place"))
    assert "__name__" in module_root("in_its_place").read()


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
