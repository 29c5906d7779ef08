"""One thread asks another for a read."""

from __future__ import annotations

import threading

import pytest

from heapwatch.runtime.request import Request


def test_the_result_comes_from_the_thread_that_makes_it() -> None:
    request = Request(threading.get_ident, iter([1.0, 1.5]).__next__)
    thread = threading.Thread(target=request.make)
    thread.start()
    assert request.wait(10) == thread.ident
    assert request.seconds == 0.5


def test_what_nobody_makes_or_what_fails_has_no_result() -> None:
    assert Request(int).wait(0.01) is None
    failing = Request(lambda: 1 / 0)
    failing.make()
    assert failing.wait(10) is None


def test_an_error_of_the_program_goes_on_in_its_thread() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    request = Request(interrupted)
    with pytest.raises(KeyboardInterrupt):
        request.make()
    assert request.wait(10) is None
