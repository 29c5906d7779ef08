"""Executes the requests `serve`, `explain` and `leave` in a thread of the entered process."""

from __future__ import annotations

import json
import logging
import os
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from heapwatch import lifecycle
from heapwatch.measure.introspection.exclusive_reads import has_lock
from heapwatch.measure.introspection.roots import OWN_THREADS
from heapwatch.runtime import environment
from heapwatch.runtime.own_files import replace
from heapwatch.runtime.owned_reads import interpreter_number
from heapwatch.watch import Watch

# Files in the folder of a visit: the explanation, a request to leave, and the confirmation.
EXPLANATION, LEAVE, LEFT = "explanation.json", "leave", "left"
_EVERY_SECONDS = 1.0
_POLL_SECONDS = 0.1
_ENDING_SECONDS = 5.0

_log = logging.getLogger("heapwatch")
_one_at_a_time = threading.Lock()
_null_handler = logging.NullHandler()
# Watches started by commands from outside; `leave` ends only these.
_entered: list[Watch] = []


def answer_to(request: dict[str, Any]) -> dict[str, Any]:
    """Execute a request and return its answer; an `error` in it is a text that follows "process N"."""
    if not _one_at_a_time.acquire(timeout=_ENDING_SECONDS):
        return {"error": "is being entered or left by another command"}
    try:
        if not has_lock():
            return {"error": "runs without the global lock: what grows cannot be read safely"}
        if interpreter_number() != 0:
            return {"error": "runs a subinterpreter in its main thread: try again while it does not"}
        return {"serve": _serve, "explain": _explain, "leave": _leave}[request["action"]](request)
    finally:
        _one_at_a_time.release()


def _serve(request: dict[str, Any]) -> dict[str, Any]:
    urls = [watch.server.url for watch in lifecycle.running() if watch.server is not None]
    if urls:
        return {"url": urls[0], "already": True}
    _disable_log()
    try:
        watch = lifecycle.start(
            request["name"], host=request["host"], port=request["port"], port_search=request["port"] is None
        )
    except BaseException:
        _enable_log()
        raise
    _entered.append(watch)
    if watch.server is None:
        _leave(request)
        if environment.is_on(environment.SERVE):
            return {
                "error": "cannot be served: no port can be used, too many of its files are open, or no"
                " further thread is allowed"
            }
        return {"error": "has HEAPWATCH_SERVE=off in its environment: nothing is served"}
    return {"url": watch.server.url, "already": False}


def _explain(request: dict[str, Any]) -> dict[str, Any]:
    """Write the explanation into the sender's folder every second.

    This ends with the request to leave, the sender, its folder or the last watch.
    """
    started, running = None, lifecycle.running()
    if not running:
        _disable_log()
        started = lifecycle.begin_unserved(request["name"])
        _entered.append(started)
    current = started or running[0]
    folder = Path(request["folder"])

    def is_over() -> bool:
        return (folder / LEAVE).exists() or not folder.exists() or not psutil.pid_exists(request["sender"])

    def report() -> None:
        with suppress(Exception):  # an error ends the visit and must not reach the program
            while (running := lifecycle.running()) and not is_over():
                watch = running[0]  # `attach` may have replaced it meanwhile
                explanation = watch.exporter.explanation().as_json()
                parts = watch.exporter.explainer.memory.parts()
                replace(folder / EXPLANATION, json.dumps(explanation | {"memory": parts}))
                deadline = time.monotonic() + _EVERY_SECONDS
                while time.monotonic() < deadline and not is_over():
                    time.sleep(_POLL_SECONDS)
        if started is not None and started in _entered and _one_at_a_time.acquire(timeout=_ENDING_SECONDS):
            try:
                _end(started)
            finally:
                _one_at_a_time.release()
        if not psutil.pid_exists(request["sender"]):
            shutil.rmtree(folder, ignore_errors=True)  # a killed sender has left it
        if started not in _entered:  # it is still there if another command holds the lock
            with suppress(OSError):
                (folder / LEFT).touch()

    threading.Thread(target=report, name=f"{OWN_THREADS}report", daemon=True).start()
    return {"already": started is None, "enabled": current.exporter.explainer.enabled}


def _leave(_request: dict[str, Any]) -> dict[str, Any]:
    if not _entered:
        own = bool(lifecycle.running())
        return {"error": "runs Heapwatch by itself, not by attach" if own else "does not run Heapwatch"}
    for watch in list(_entered):
        _end(watch)
    return {"threads": [thread.name for thread in threading.enumerate() if _is_ours(thread)]}


def _end(watch: Watch) -> None:
    if watch in _entered:
        _entered.remove(watch)
    lifecycle.end(watch)
    deadline = time.monotonic() + _ENDING_SECONDS
    while (
        not lifecycle.running() and any(map(_is_ours, threading.enumerate())) and time.monotonic() < deadline
    ):
        time.sleep(0.02)
    if not _entered:
        _enable_log()


def _abandon() -> None:
    """Forget all visits in a forked child, where their threads do not run."""
    global _one_at_a_time
    _one_at_a_time = threading.Lock()
    if _entered:
        _entered.clear()
        _enable_log()


def _is_ours(thread: threading.Thread) -> bool:
    """Whether a watch runs this thread; the threads that answer or write the explanation do not count."""
    excluded = (f"{OWN_THREADS}enter", f"{OWN_THREADS}report")
    return thread.name.startswith(OWN_THREADS) and thread.name not in excluded


def _disable_log() -> None:
    """Keep messages out of the program's stderr and log; the command that entered prints them."""
    _log.disabled = True
    if not _log.handlers:
        _log.addHandler(_null_handler)


def _enable_log() -> None:
    _log.disabled = False
    _log.removeHandler(_null_handler)


os.register_at_fork(after_in_child=_abandon)
