"""Starts and stops watches: one for each trainer's name, none in forked or spawned workers."""

from __future__ import annotations

import atexit
import errno
import logging
import os
import socket
import sys
from pathlib import Path
from typing import Any

from heapwatch.errors import reason
from heapwatch.http.server import DEFAULT_PORT, PortTaken
from heapwatch.judge.limits import PROFILE_NAMES
from heapwatch.lost import TERMINATED
from heapwatch.measure.introspection.names import type_of
from heapwatch.runtime import environment
from heapwatch.runtime.safe_point import DEFAULT_BUDGET, DEFAULT_INTERVAL
from heapwatch.runtime.termination import Termination
from heapwatch.text.terminal import show_notices
from heapwatch.watch import Watch

log = logging.getLogger("heapwatch")

_LOOPBACK = "127.0.0.1"
_NO_ADDRESS = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, socket.EAI_NONAME)

_running: dict[str, Watch] = {}


def start(
    name: str = "trainer",
    *,
    port: int | None = None,
    host: str | None = None,
    token: str | None = None,
    port_search: bool = True,
    framework: str = "",
    run: str = "",
    profile: str | None = None,
    walker_names: bool = False,
    interval: float = DEFAULT_INTERVAL,
    budget: float = DEFAULT_BUDGET,
    record: str | Path | None = None,
    local_cleanup: bool = False,
) -> Watch:
    """Watch this process and serve `/metrics`; also a context manager, which stops at its end.

    The trainer joins the running stack of this user (`heapwatch.registration.choose` says which of several),
    which may then request cleanups; without a stack it waits for one. One line of level INFO says where it
    serves and which stack scrapes it; on stderr if the program has not configured logging.

    Errors in the environment (a variable, a port, a folder) are logged once and never raise: the default is
    used, or that part is missing. HEAPWATCH_SERVE, HEAPWATCH_EXPLAIN and HEAPWATCH_TRACE switch parts off.

    The watch ends with the program. If SIGTERM ends the program, the summary is logged and the record is
    closed first, in two seconds at most. A program that handles that signal decides itself when it ends.

    A second start with the same name stops the first one, so a notebook's cell can be run again. A spawned
    worker runs the main script a second time; the watch that it gets serves nothing.

    Args:
        name: the trainer's name.
        port: the port to listen on, 0 for any free one; by default HEAPWATCH_TRAINER_PORT, else 7777. If it
            is taken, the next free one is used, with a warning if it was given explicitly.
        host: the address to listen on; by default HEAPWATCH_BIND, else loopback.
        token: the secret of `POST /force_cleanup`; by default HEAPWATCH_TOKEN, or the file
            HEAPWATCH_TOKEN_FILE, or that of the running stack. Without one every cleanup request is refused.
        port_search: False raises if the port is taken.
        framework: the library that trains, label of `trainer_info`.
        run: which run this is, label of `trainer_info`; by default the task of a Slurm job array.
        profile: whose default limits apply, a name of `heapwatch.judge.limits.PROFILES`; by default
            HEAPWATCH_PROFILE, else `default`.
        walker_names: also export the `walker_*` names of the Walker system.
        interval: least number of seconds between samples of live objects.
        budget: CPU seconds per second that all samples of live objects together may take.
        record: file for `heapwatch report`, see `Watch.record`; by default HEAPWATCH_RECORD, if set.
        local_cleanup: let every command of this machine request a cleanup without the token; only where the
            trainer listens on loopback.

    Raises:
        ValueError: for an argument that is not allowed.
        OSError: for an argument that cannot be used: the host is not an address of this machine, the record
            cannot be written, the port is not permitted, or is taken and `port_search` is off.

    """
    show_notices()
    watch = Watch(
        name,
        framework=framework,
        run=run,
        profile=profile or environment.choice("HEAPWATCH_PROFILE", PROFILE_NAMES, "default"),
        walker_names=walker_names,
        interval=interval,
        budget=budget,
    )
    if _is_being_spawned():
        return watch
    for previous in running():
        if previous.name == name:
            end(previous)
    if unread := environment.unread():
        environment.say_once(unread)
    requested_port = port if port is not None else _port_of_environment()
    try:
        _serve(watch, host, requested_port, token=token, port_search=port_search, local_cleanup=local_cleanup)
    except (OSError, RuntimeError) as error:
        if isinstance(error, OSError) and _is_of_an_argument(error, host, port, port_search):
            raise
        environment.say_once(f"{name} is not served: {reason(error)}")
    _begin(watch)
    _running[name] = watch
    _record(watch, record)
    _log_address(watch, requested_port)
    return watch


def _is_being_spawned() -> bool:
    """Whether this is a worker of multiprocessing that runs the main script a second time."""
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and getattr(processes.current_process(), "_inheriting", False)


def begin_unserved(name: str) -> Watch:
    """Watch this process only for what grows: nothing is served, no stack joined, no signal handled."""
    watch = Watch(name)
    watch.exporter.explainer.program.workers = None  # the command that entered this process visits them
    watch.exporter.begin()
    _running[name] = watch
    return watch


def running() -> list[Watch]:
    """The watches of this process; those that the program has stopped are forgotten."""
    for name, watch in list(_running.items()):
        # Another thread may have started one of the same name meanwhile.
        if not watch.exporter.is_running and _running.get(name) is watch:
            _running.pop(name, None)
    return list(_running.values())


def end(watch: Watch) -> None:
    """Stop a watch, and forget it."""
    watch.stop()
    running()  # forgets it


def _serve(watch: Watch, host: str | None, port: int | None, **options: Any) -> None:
    """Serve, unless that is off."""
    if not environment.is_on(environment.SERVE):
        log.info("%s is not served: %s is off", watch.name, environment.SERVE)
        return
    bind = host or os.environ.get("HEAPWATCH_BIND") or _LOOPBACK
    watch.exporter.serve(bind, DEFAULT_PORT if port is None else port, **options)


def _is_of_an_argument(error: OSError, host: str | None, port: int | None, port_search: bool) -> bool:
    """Whether an argument of the caller is the cause, and not the environment."""
    if isinstance(error, PortTaken):
        return port is not None or not port_search
    if error.errno == errno.EACCES:
        return port is not None
    return host is not None and error.errno in _NO_ADDRESS


def _begin(watch: Watch) -> None:
    try:
        watch.exporter.begin()
        termination.install()
    except RuntimeError as error:  # no further thread is allowed
        environment.say_once(f"{watch.name} is watched in part: {error}")


def _record(watch: Watch, record: str | Path | None) -> None:
    path = record or os.environ.get("HEAPWATCH_RECORD")
    if not path:
        return
    try:
        watch.record(path)
    except OSError as error:
        if record:
            watch.exporter.stop(log_findings=False)
            running()  # forgets it
            raise
        environment.say_once(f"HEAPWATCH_RECORD is {path!r}, nothing is recorded: {reason(error)}")


def _log_address(watch: Watch, requested_port: int | None) -> None:
    server, registration = watch.server, watch.exporter.registration
    if server is None or registration is None:
        return
    expected_port = DEFAULT_PORT if requested_port is None else requested_port
    note = ""
    if expected_port not in (0, server.port) and requested_port is None:
        note = f" ({expected_port} is taken)"
    elif expected_port not in (0, server.port):
        log.warning("%s: port %d is taken; serving on %d instead", watch.name, expected_port, server.port)
    log.info("%s at %s%s: %s", watch.name, server.url, note, registration.describe())


def _port_of_environment() -> int | None:
    try:
        return environment.trainer_port()
    except ValueError as error:
        environment.say_once(f"{error}; {DEFAULT_PORT} is used")
        return None


def _end_all() -> None:
    for watch in running():
        watch.exporter.stop(failure=TERMINATED)


def failure_at_exit() -> str:
    """Why the program that ends now has failed: an exception that nobody caught; empty without one."""
    error = getattr(sys, "last_value", None)
    is_interactive = hasattr(sys, "ps1")  # then it is that of any line
    if error is None or is_interactive or isinstance(error, KeyboardInterrupt):
        return ""
    return f"ended by {type_of(error)}"


def _stop_all() -> None:
    for watch in running():
        watch.exporter.stop(failure=failure_at_exit())
    _running.clear()


def _before_fork() -> None:
    for watch in list(_running.values()):
        watch.exporter.explainer.tracer.end_period()  # which a child would continue and could not end
    termination.before_fork()


def _abandon_all() -> None:
    for watch in running():
        watch.exporter.abandon()
    _running.clear()
    termination.abandon()


termination = Termination([_end_all])
atexit.register(_stop_all)
os.register_at_fork(before=_before_fork, after_in_parent=termination.after_fork, after_in_child=_abandon_all)
