from __future__ import annotations

import gc
import sys
import threading
import weakref
from types import FrameType, ModuleType

import pytest

from heapwatch.measure.introspection import roots
from heapwatch.measure.introspection.reading import Gone
from heapwatch.measure.introspection.roots import frame_roots, module_root, user_modules
from tests.support.repository import REPOSITORY, SOURCES


class Batch:
    pass


def run_in_thread(function: object) -> tuple[threading.Thread, threading.Event, threading.Event]:
    ready, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=function, args=(ready, done), daemon=True)  # type: ignore[arg-type]
    thread.start()
    assert ready.wait(10)
    return thread, ready, done


def test_local_variables_of_other_threads_are_found_and_let_go() -> None:
    gone = threading.Event()
    refs = []

    def training(ready: threading.Event, done: threading.Event) -> None:
        batch: Batch | None = Batch()
        refs.append(weakref.ref(batch))
        ready.set()
        done.wait(10)
        batch = None
        done.clear()
        gone.set()
        done.wait(10)

    thread, _, done = run_in_thread(training)
    (root,) = [root for root in frame_roots() if root.label == "training()"]
    assert type(root.read()["batch"]) is Batch
    done.set()
    assert gone.wait(10)
    gc.collect()
    assert refs[0]() is None
    done.set()
    thread.join(10)
    with pytest.raises(Gone):
        root.read()


def test_a_snapshot_that_the_program_took_is_left_as_it_is() -> None:
    taken: list[dict[str, object]] = []

    def training(ready: threading.Event, done: threading.Event) -> None:
        batch = Batch()
        taken.append(locals())
        ready.set()
        done.wait(10)
        del batch

    thread, _, done = run_in_thread(training)
    (root,) = [root for root in frame_roots() if root.label == "training()"]
    root.read()
    assert type(taken[0]["batch"]) is Batch
    done.set()
    thread.join(10)


@pytest.mark.parametrize("local", [True, False])
def test_the_variables_of_a_function_that_is_traced_stay(local: bool) -> None:
    ended: list[str] = []

    def traced(batch: str) -> None:
        ended.append(batch)

    def training(ready: threading.Event, done: threading.Event) -> None:
        def trace(frame: FrameType, event: str, arg: object) -> object:
            if frame.f_code is traced.__code__ and not done.is_set():
                ready.set()
                done.wait(10)  # as a debugger that waits for a command
            return trace if local else None

        sys.settrace(trace)
        traced("kept")
        sys.settrace(None)

    thread, _, done = run_in_thread(training)
    (root,) = [root for root in frame_roots() if root.label == "traced()"]
    assert root.read()["batch"] == "kept"
    done.set()
    thread.join(10)
    assert ended == ["kept"]


def test_modules_of_a_library_and_of_the_package_are_not_the_users() -> None:
    assert __name__ in user_modules()
    assert "json" in sys.modules
    assert "json" not in user_modules()
    assert not any(name.startswith("heapwatch") for name in user_modules())


def test_every_package_of_the_wheel_is_known_as_ours() -> None:
    packages = {one.parent.name for folder in SOURCES for one in (REPOSITORY / folder).glob("*/__init__.py")}
    assert packages == set(roots._OWN_PACKAGES)


def test_what_stands_in_a_modules_place_is_no_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "in_its_place", object())  # type: ignore[arg-type]
    with pytest.raises(Gone):
        module_root("in_its_place").read()
    monkeypatch.setitem(sys.modules, "in_its_place", ModuleType("in_its_place"))
    assert "__name__" in module_root("in_its_place").read()
