"""Finds the processes of a Ray job on this machine by procfs and Ray's log files.

Actors and tasks are children of the raylet, not of the driver. Ray names the log files of its processes after
the job, and a worker's output begins with `:job_id:` as soon as it has one, which the log monitor reads as
well (ray/_private/ray_constants.py, LOG_PREFIX_JOB_ID; docs.ray.io, "Logging directory structure").
"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from functools import lru_cache
from typing import NamedTuple

from heapwatch.measure.process.procfs import children_of, command_of, open_files, pids, read

_DRIVER = re.compile(r"/(session_[^/]+)/logs/python-core-driver-([0-9a-f]{8})f*_\d+\.log$")
_WORKER = re.compile(r"/(session_[^/]+)/logs/worker-[0-9a-f]+-([0-9a-f]{8})-\d+\.(?:out|err)$")
_JOB = re.compile(rb"^:job_id:([0-9a-f]{8})$", re.MULTILINE)
_ACTOR = re.compile(rb"^:actor_name:(.{1,200})$", re.MULTILINE)
_NO_JOB = "ffffffff"
_HEAD_BYTES = 4096
_RAYLET, _WORKER_TITLE = b"/raylet", b"ray::"


class RayJob(NamedTuple):
    """The job of a process: the session of Ray that it belongs to, and its number as Ray writes it.

    `actor` is the class of an actor, or its own name for itself; empty for a driver and for tasks.
    """

    session: str
    job: str
    actor: str = ""


def driven_job(pid: int, proc: str = "/proc") -> RayJob | None:
    """The job that a process drives; None if it drives none, or may not be looked at."""
    if pid == os.getpid() and "ray" not in sys.modules:
        return None
    matches = (_DRIVER.search(path) for _, path in open_files(pid, proc))
    return next((RayJob(*match.groups()) for match in matches if match), None)


def worker_job(pid: int, proc: str = "/proc") -> RayJob | None:
    """The job that a worker of Ray works for; None for other processes, and for a worker without one."""
    output = f"{proc}/{pid}/fd/1"
    try:
        match = _WORKER.search(os.readlink(output))
        if match is None:
            return None
        head = _head(output)
    except OSError:
        return None
    session, job = match.groups()
    if job == _NO_JOB:  # it was started before it was needed
        match_in_log = _JOB.search(head)
        if match_in_log is None:
            return None
        job = match_in_log[1].decode()
    actor = _ACTOR.search(head)
    return RayJob(session, job, actor[1].decode(errors="replace") if actor else "")


def ray_workers(driver: int, proc: str = "/proc") -> list[int]:
    """The workers of the job that a process drives, of all raylets on this machine; empty without a job."""
    job_of_driver = driven_job(driver, proc)
    if job_of_driver is None:
        return []
    minute = int(time.monotonic() / 60)
    of_session = _raylets_of(job_of_driver.session, proc, minute)
    workers = (pid for raylet in of_session for pid in children_of(raylet, proc))
    return [
        pid
        for pid in workers
        if (job := worker_job(pid, proc)) and (job.session, job.job) == job_of_driver[:2]
    ]


def is_ray_worker(pid: int, proc: str = "/proc") -> bool:
    """Whether a process runs tasks or an actor of Ray, by the title that Ray gives it."""
    return read(f"{proc}/{pid}/cmdline").startswith(_WORKER_TITLE)


def raylets(proc: str = "/proc") -> list[int]:
    """The processes that serve a node of a Ray cluster on this machine."""
    commands = ((pid, read(f"{proc}/{pid}/cmdline")) for pid in pids(proc))
    return [pid for pid, command in commands if command.partition(b"\0")[0].endswith(_RAYLET)]


@lru_cache(maxsize=1)
def _raylets_of(session: str, proc: str, _minute: int) -> tuple[int, ...]:
    """The raylets of a session on this machine, looked for once in each minute."""
    return tuple(pid for pid in raylets(proc) if session in " ".join(command_of(pid, proc)))


def _head(file: str) -> bytes:
    """The beginning of a regular file; OSError for anything else, which may never answer."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        return os.pread(descriptor, _HEAD_BYTES, 0)
    finally:
        os.close(descriptor)
