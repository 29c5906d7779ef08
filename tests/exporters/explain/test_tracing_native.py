"""Memory of C code gets the line of the program that takes it, and the program is left as it was."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heapwatch.explain import tracing as native_tracing
from heapwatch.explain.engine import Explainer
from heapwatch.explain.findings import Explanation, Finding, headline
from heapwatch.explain.sites import Site
from heapwatch.explain.tracing import NativeTracer

pytest.importorskip("memray")


@pytest.fixture
def tracer(monkeypatch: pytest.MonkeyPatch) -> Iterator[NativeTracer]:
    monkeypatch.setenv("HEAPWATCH_NATIVE", "on")
    monkeypatch.setattr(native_tracing, "WINDOW_SECONDS", 0.5)
    monkeypatch.setattr(native_tracing, "is_user_file", lambda file: file == __file__)
    monkeypatch.setattr(native_tracing, "_is_profiled", lambda: False)  # as under coverage
    one = NativeTracer()
    yield one
    one.stop()


def fill(database: sqlite3.Connection, ended: threading.Event) -> None:
    while not ended.wait(0.001):
        database.execute("insert into kept values (zeroblob(20000))")


@pytest.fixture
def leaking() -> Iterator[None]:
    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.execute("create table kept (x blob)")
    ended = threading.Event()
    thread = threading.Thread(target=fill, args=[database, ended])
    thread.start()
    yield
    ended.set()
    thread.join(10)
    database.close()


def until(tracer: NativeTracer, done: Callable[[], bool], growth: float = 1.0) -> None:
    end = time.monotonic() + 60
    while not done() and time.monotonic() < end:
        tracer.step(growth)
        time.sleep(0.05)
    assert done()


@pytest.mark.usefixtures("leaking")
def test_the_line_that_takes_the_memory_is_found(tracer: NativeTracer) -> None:
    until(tracer, lambda: tracer.site is not None)
    assert tracer.site == Site(__file__, fill.__code__.co_firstlineno + 2, "fill")


@pytest.mark.usefixtures("leaking")
def test_a_window_with_a_small_part_of_the_growth_tells_no_line(
    tracer: NativeTracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of an allocator that takes large pieces now and then; in between small things are left."""
    tracer.step(1e15)
    until(tracer, lambda: tracer.windows == 1 and tracer._tracker is None and tracer._reader is None)
    assert tracer.site is None
    assert tracer.enabled


def test_what_arrows_pool_takes_has_its_line(tracer: NativeTracer) -> None:
    """It takes memory from the system by the gigabyte; after a window it is the one that it was."""
    arrow = pytest.importorskip("pyarrow")
    usual, arrays = arrow.default_memory_pool(), []

    def batch() -> bool:
        arrays.append(arrow.nulls(100_000, arrow.int64()))
        return tracer.site is not None

    until(tracer, batch, growth=1e8)
    assert tracer.site == Site(__file__, batch.__code__.co_firstlineno + 1, "batch")
    assert arrow.default_memory_pool().backend_name == usual.backend_name != "system"


def test_a_pool_that_the_program_sets_meanwhile_stays(tracer: NativeTracer) -> None:
    arrow = pytest.importorskip("pyarrow")
    usual = arrow.default_memory_pool()
    tracer.step(1.0)
    try:
        arrow.set_memory_pool(chosen := arrow.logging_memory_pool(usual))
        tracer.stop()
        assert arrow.default_memory_pool().backend_name == chosen.backend_name
    finally:
        arrow.set_memory_pool(usual)


def test_nothing_is_left_of_a_window(
    tracer: NativeTracer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_tracing.tempfile, "tempdir", str(tmp_path))
    threads = threading.active_count()
    tracer.step(1.0)
    assert list(tmp_path.iterdir())
    tracer.stop()
    assert (list(tmp_path.iterdir()), threading.active_count(), sys.getprofile()) == ([], threads, None)


def test_a_window_begins_only_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEAPWATCH_NATIVE", raising=False)
    one = NativeTracer()
    one.step(1.0)
    assert (one.enabled, one.windows) == (False, 0)


def test_none_begins_beside_another_tracer_or_without_a_reason(tracer: NativeTracer) -> None:
    tracer.step(0.0)
    tracemalloc.start()
    try:
        tracer.step(1.0)
    finally:
        tracemalloc.stop()
    assert tracer.windows == 0


@pytest.mark.parametrize("install", [sys.setprofile, threading.setprofile])
def test_none_begins_in_a_program_that_is_profiled(install: Callable[[object], None]) -> None:
    install(lambda *_: None)
    try:
        assert native_tracing._is_profiled()
    finally:
        install(None)


def test_a_record_that_is_too_large_ends_it(tracer: NativeTracer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_tracing, "MOST_BYTES", 10)
    until(tracer, lambda: not tracer.enabled)
    assert tracer.site is None


def test_a_record_that_cannot_be_read_is_said(
    tracer: NativeTracer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(native_tracing.NativeTracer, "_lines_file", lambda self: Path("/dev/null"))
    until(tracer, lambda: not tracer.enabled)
    assert "memory of C code is not traced any more" in caplog.text


def deep(frames: int, database: sqlite3.Connection, ended: threading.Event) -> None:
    if frames:
        deep(frames - 1, database, ended)
    else:
        fill(database, ended)


def test_deep_calls_of_long_names_are_read(tracer: NativeTracer) -> None:
    """Their text is longer than what a pipe holds."""
    databases = [sqlite3.connect(":memory:", check_same_thread=False) for _ in range(8)]
    ended = threading.Event()
    for at, database in enumerate(databases):
        database.execute("create table kept (x blob)")
        threading.Thread(target=deep, args=[60 + at, database, ended], daemon=True).start()
    try:
        until(tracer, lambda: tracer.site is not None)
    finally:
        ended.set()


def test_the_explanation_has_the_line() -> None:
    explainer = Explainer()
    explainer.native.site = Site("/home/me/train.py", 7, "step")
    what = "memory that no Python object accounts for"
    found = explainer._located(Finding("native", None, what, None, None, None, 48e6, 1.0, is_leak=True))
    assert "taken at train.py:7 in `step`" in headline(Explanation("leak", 900.0, 48e6, 0.0, (found,)))
