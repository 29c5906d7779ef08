"""What is done inside an entered process: serve, explain, leave. In a thread of its own."""

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

from heapwatch import lifecycle
from heapwatch.measure.introspection.exclusive_reads import has_lock
from heapwatch.measure.introspection.roots import OWN_THREADS
from heapwatch.runtime import environment
from heapwatch.runtime.own_files import replace
from heapwatch.runtime.owned_reads import interpreter_number
from heapwatch.watch import Watch

# Files in the folder of a visit: what was found, that it is to end, and that it has ended.
EXPLANATION, LEAVE, LEFT = "explanation.json", "leave", "left"
_EVERY_SECONDS = 1.0
_POLL_SECONDS = 0.1
_ENDING_SECONDS = 5.0

_log = logging.getLogger("heapwatch")
_one_at_a_time = threading.Lock()
_silence = logging.NullHandler()
# Begun from outside, the only ones that are ended from outside.
_entered: list[Watch] = []


def answer_to(asked: dict[str, Any]) -> dict[str, Any]:
    """Do it; the answer has an `error` where it was not done, in words that follow "process N"."""
    if not _one_at_a_time.acquire(timeout=_ENDING_SECONDS):
        return {"error": "is being entered or left by another command"}
    try:
        if not has_lock():
            return {"error": "runs without the global lock: what grows cannot be read safely"}
        if interpreter_number() != 0:
            return {"error": "runs a subinterpreter in its main thread: try again while it does not"}
        return {"serve": _serve, "explain": _explain, "leave": _leave}[asked["action"]](asked)
    finally:
        _one_at_a_time.release()


def _serve(asked: dict[str, Any]) -> dict[str, Any]:
    urls = [watch.server.url for watch in lifecycle.running() if watch.server is not None]
    if urls:
        return {"url": urls[0], "already": True}
    _be_silent()
    try:
        watch = lifecycle.start(
            asked["name"], host=asked["host"], port=asked["port"], port_search=asked["port"] is None
        )
    except BaseException:
        _be_heard()
        raise
    _entered.append(watch)
    if watch.server is None:
        _leave(asked)
        if environment.is_on(environment.SERVE):
            return {
                "error": "cannot be served: no port can be used, too many of its files are open, or no"
                " further thread is allowed"
            }
        return {"error": "has HEAPWATCH_SERVE=off in its environment: nothing is served"}
    return {"url": watch.server.url, "already": False}


def _explain(asked: dict[str, Any]) -> dict[str, Any]:
    """Write the explanation into the sender's folder every second, until that ends it or one is gone."""
    own, running = None, lifecycle.running()
    if not running:
        _be_silent()
        own = lifecycle.begin_unserved(asked["name"])
        _entered.append(own)
    first = own or running[0]
    folder = Path(asked["folder"])

    def is_over() -> bool:
        return (folder / LEAVE).exists() or not folder.exists() or _has_ended(asked["sender"])

    def report() -> None:
        with suppress(Exception):  # an error ends the visit, and is none of the program's
            while (running := lifecycle.running()) and not is_over():
                watch = running[0]  # an attach meanwhile takes the place of this one
                found = watch.exporter.explanation().as_json()
                parts = watch.exporter.explainer.memory.parts()
                replace(folder / EXPLANATION, json.dumps(found | {"memory": parts}))
                until = time.monotonic() + _EVERY_SECONDS
                while time.monotonic() < until and not is_over():
                    time.sleep(_POLL_SECONDS)
        if own is not None and own in _entered and _one_at_a_time.acquire(timeout=_ENDING_SECONDS):
            try:
                _end(own)
            finally:
                _one_at_a_time.release()
        if _has_ended(asked["sender"]):
            shutil.rmtree(folder, ignore_errors=True)  # a killed sender has left it
        if own not in _entered:  # it may not have been ended: another command is at work
            with suppress(OSError):
                (folder / LEFT).touch()

    threading.Thread(target=report, name=f"{OWN_THREADS}report", daemon=True).start()
    return {"already": own is None, "enabled": first.exporter.explainer.enabled}


def _has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # it is another user's
        return False
    return False


def _leave(_asked: dict[str, Any]) -> dict[str, Any]:
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
    until = time.monotonic() + _ENDING_SECONDS
    while not lifecycle.running() and any(map(_is_ours, threading.enumerate())) and time.monotonic() < until:
        time.sleep(0.02)
    if not _entered:
        _be_heard()


def _abandon() -> None:
    """In a forked child: no visit is in it, and no thread that would end one."""
    global _one_at_a_time
    _one_at_a_time = threading.Lock()
    if _entered:
        _entered.clear()
        _be_heard()


def _is_ours(thread: threading.Thread) -> bool:
    """Whether it is a thread of a watch, and not one that carries this answer or writes the explanation."""
    passing = (f"{OWN_THREADS}enter", f"{OWN_THREADS}report")
    return thread.name.startswith(OWN_THREADS) and thread.name not in passing


def _be_silent() -> None:
    """Write nothing on the program's stderr or into its log: the one who entered reads it elsewhere."""
    _log.disabled = True
    if not _log.handlers:
        _log.addHandler(_silence)


def _be_heard() -> None:
    _log.disabled = False
    _log.removeHandler(_silence)


os.register_at_fork(after_in_child=_abandon)
