import asyncio
import functools
import signal
import sys

import pytest

from heapwatch.runtime.failures import Failures, describe, must_propagate


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no")


def test_each_kind_of_failure_is_said_once_and_counted_always(caplog):
    failures = Failures()
    for _ in range(100):
        failures.record("entities", "food", KeyError("gone"))
        failures.record("entities", "food", ValueError("bad"))
    assert failures.counts["entities"] == 200
    assert len(caplog.records) == 2
    assert "entities: food: KeyError: 'gone'" in caplog.text


def test_the_log_is_bounded(caplog):
    failures = Failures()
    for number in range(1000):
        failures.record("entities", f"name{number}", KeyError("gone"))
    assert failures.counts["entities"] == 1000
    assert len(caplog.records) == 257
    assert "others are only counted" in caplog.records[-1].message


def test_an_error_that_cannot_be_read_is_named():
    assert describe(Unspeakable()) == "Unspeakable: (no message)"
    assert "\n" not in describe(ValueError("two\nlines"))


def caught(function):
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("it did not raise")


@pytest.mark.parametrize("kind", [SystemExit, asyncio.CancelledError])
def test_what_a_source_raises_is_not_the_trainers_but_for_an_interrupt(kind):
    def source():
        raise kind("no")

    assert not must_propagate(caught(source))
    assert must_propagate(KeyboardInterrupt())


class Handler:
    def __call__(self, number, frame):
        sys.exit(143)

    def method(self, number, frame):
        sys.exit(143)


@pytest.mark.parametrize(
    "handler",
    [
        lambda number, frame: sys.exit(143),
        functools.partial(lambda code, number, frame: sys.exit(code), 143),
        Handler(),
        Handler().method,
    ],
)
def test_what_a_handler_of_a_signal_raises_is_the_trainers(handler):
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        assert must_propagate(caught(lambda: signal.raise_signal(signal.SIGUSR1)))
        assert not must_propagate(caught(sys.exit))
    finally:
        signal.signal(signal.SIGUSR1, before)
