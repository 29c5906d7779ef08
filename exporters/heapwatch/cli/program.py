"""The part of `heapwatch run` in the process of the program: starts the watch, and explains at the end."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
import threading
import time
import warnings
from contextlib import suppress
from typing import Any, NoReturn, TextIO

import psutil

from heapwatch.cli.run_options import RunOptions, take_options
from heapwatch.errors import UsageError, reason
from heapwatch.explain.engine import NOW_SECONDS
from heapwatch.explain.findings import Explanation, narrative
from heapwatch.judge.verdict import SERIOUS
from heapwatch.lifecycle import failure_at_exit, start, termination
from heapwatch.lost import TERMINATED
from heapwatch.measure.introspection.roots import OWN_THREADS
from heapwatch.runtime import environment
from heapwatch.text.terminal import json_text, say, show_notices
from heapwatch.watch import Watch

USAGE_ERROR = 64
_PRINTED_IF_QUIET = ("growing", *SERIOUS)
_GRACE_SECONDS = 10.0  # for the program to end when its time is up
_THREADS_SECONDS = 1.0  # for its other threads when the main one has ended
_LAST_SECONDS = 1.0  # for the explanation when SIGTERM ends the program
_POLL_SECONDS = 0.1


class TimeIsUp(SystemExit):
    """Raised in the main thread to end the program, so that its `finally` blocks run."""


def begin() -> None:
    """Start the watch with the options of `heapwatch run`, and restore the environment."""
    options = take_options()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # -W error is meant for the program
        if options.is_quiet:
            show_notices()
            logging.getLogger("heapwatch").setLevel(logging.WARNING)
        try:
            watch = start(options.name, port=options.port, record=options.record)
        except (OSError, ValueError) as error:
            say(f"heapwatch: {reason(error)}", error=True)
            os._exit(USAGE_ERROR)  # nothing else has begun, and `site` reports other ends as a crash
    Run(watch, options).begin()


class Run:
    """Prints the explanation of a watched program once at its end, whatever the cause of the end."""

    def __init__(self, watch: Watch, options: RunOptions) -> None:
        self._exporter = watch.exporter
        self._options = options
        # The program may replace or close `sys.stdout` and `sys.stderr`.
        self._stream: TextIO | None = sys.stdout if options.prints_json else sys.stderr
        self._code = 0
        self._time_is_up = False
        self._printing = threading.Lock()
        self._ended = threading.Event()
        self._process = os.getpid()

    def begin(self) -> None:
        """Wait for the end of the program in the background, and end it when its time is up."""
        atexit.register(self._at_exit)
        termination.before_end.insert(0, lambda: self._finish(_LAST_SECONDS, TERMINATED))
        if self._options.seconds is not None:
            signal.signal(signal.SIGALRM, _raise_time_is_up)
            threading.Thread(target=self._end_after, name=f"{OWN_THREADS}timer", daemon=True).start()

    def _at_exit(self) -> None:
        if os.getpid() != self._process:
            return  # a child that the program forked: the explanation is the parent's
        self._ended.set()
        self._finish(NOW_SECONDS, failure_at_exit())
        if self._time_is_up:
            _leave(self._code)
        if self._code:
            _flush()
            os._exit(self._code)

    def _conclude(self, explanation: Explanation) -> None:
        """Write the files of `--output`, and set the exit code that `--fail-on` requires."""
        output, fail_on = self._options.output, self._options.fail_on
        if not (output or fail_on):
            return
        from heapwatch.cli.results import FAILED, conclude, fails  # nothing that the program loads by itself

        if fail_on and fails(explanation.verdict, fail_on):
            self._code = FAILED
        with suppress(OSError, ValueError, AttributeError):
            try:
                conclude(explanation, output, fail_on, self._stream)
            except UsageError as error:
                self._code = USAGE_ERROR
                say(f"heapwatch: {error}", stream=self._stream)

    def _finish(self, seconds: float, failure: str = "") -> None:
        """Print the explanation unless it is printed already, and stop the exporter."""
        explanation = self._exporter.explainer.conclude(seconds)
        # Do not wait for the lock: SIGTERM may have interrupted the thread that holds it.
        if self._printing.acquire(blocking=False):
            self._print(explanation)
            self._conclude(explanation)
        self._exporter.stop(log_findings=False, failure=failure)

    def _print(self, explanation: Explanation) -> None:
        if self._options.prints_json:
            lines = json_text(explanation.as_json()).split("\n")
        elif not self._exporter.explainer.enabled:
            lines = [f"heapwatch: {environment.EXPLAIN} is off: what grows is not known"]
        elif self._options.is_quiet and explanation.verdict not in _PRINTED_IF_QUIET:
            return
        else:
            lines = f"heapwatch: {narrative(explanation)}".split("\n")
        with suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()
        with suppress(OSError, ValueError, AttributeError):
            say(*lines, stream=self._stream)

    def _end_after(self) -> None:
        if self._ended.wait(self._options.seconds):
            return
        self._exporter.explainer.conclude(NOW_SECONDS)
        self._time_is_up = True
        main = threading.main_thread()
        if main.ident is not None and signal.getsignal(signal.SIGALRM) is _raise_time_is_up:
            signal.pthread_kill(main.ident, signal.SIGALRM)
        deadline = time.monotonic() + _GRACE_SECONDS
        while time.monotonic() < deadline and not self._ended.wait(_POLL_SECONDS):
            if not main.is_alive():
                deadline = min(deadline, time.monotonic() + _THREADS_SECONDS)
                self._ended.wait(deadline - time.monotonic())
                break
        if not self._ended.is_set():
            try:
                threading.Thread(target=self._end_now, name=f"{OWN_THREADS}end", daemon=True).start()
            except RuntimeError:  # no thread can be started at the end of the interpreter
                self._end_now()
        time.sleep(_GRACE_SECONDS)  # then nobody reads what is printed
        os._exit(self._code)

    def _end_now(self) -> None:
        self._finish(NOW_SECONDS)
        _leave(self._code)


def _raise_time_is_up(*_arguments: Any) -> NoReturn:
    raise TimeIsUp(0)


def _leave(code: int) -> NoReturn:
    """End this process and its children at once: the threads of the program may never end by themselves."""
    _flush()
    with suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                child.terminate()
    os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
