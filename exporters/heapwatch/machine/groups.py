"""Sorts the processes of this machine into groups: actors of a class, workers of a program, ranks."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from heapwatch.measure.process.other_process import program_name
from heapwatch.measure.process.process_tree import is_housekeeper, is_tracker
from heapwatch.measure.process.procfs import Status, command_of, pids, read, status_of
from heapwatch.measure.process.ray_job import worker_job

_WORKER_COMMANDS = ("multiprocessing.spawn import", "multiprocessing.forkserver import", "popen_loky_posix")
_DATA_LOADER = "pt_data_"  # torch names the main thread of such a worker (torch/utils/data/_utils/worker.py)
_RANK = re.compile(rb"(?:^|\0)(?:WORLD_SIZE|OMPI_COMM_WORLD_SIZE|SLURM_NTASKS)=(?!1\0)\d")
_RAY = "ray::"
_LONGEST_NAME = 64
_MOST_ANCESTORS = 64  # ids that are used again could make a circle
_ENDED = "ZX"


class Member(NamedTuple):
    """A process of a group.

    Attributes:
        pid: its id.
        started: its start in seconds since the boot, which distinguishes processes that get the same id.
        group: name of its group.
        is_python: whether its program is an interpreter of Python.

    """

    pid: int
    started: float
    group: str
    is_python: bool

    @property
    def is_of_ray(self) -> bool:
        """Whether it is a worker of Ray, or a raylet."""
        return self.group.startswith(_RAY) or " of Ray job " in self.group or self.group == "raylet"


class Groups:
    """Names the group of each process. It reads once what never changes of a process.

    Args:
        everyone: take processes of other users as well.
        proc: where the process file system is mounted.

    """

    def __init__(self, *, everyone: bool = False, proc: str = "/proc") -> None:
        self._everyone = everyone
        self._proc = proc
        self._known: dict[int, Member] = {}
        self._with_tracker: set[int] = set()

    def members(self, among: Collection[int] | None = None) -> list[Member]:
        """The live processes, or those `among` them, without kernel threads, helpers and this process."""
        live = []
        self._with_tracker.clear()
        for pid in pids(self._proc) if among is None else among:
            status = status_of(pid, self._proc) if self._is_watched(pid) else None
            if status is None or status.state in _ENDED:
                continue
            member = self._known.get(pid)
            if member is None or member.started != status.started:
                member = self._named(pid, status)
            if member is not None:
                live.append(member)
        # A worker without a job gets its group later.
        self._known = {member.pid: member for member in live if not member.group.startswith(_RAY)}
        return live

    def shares_memory(self, pid: int) -> bool:
        """Whether a process or one above it has a resource tracker, which starts with the first segment."""
        for _ in range(_MOST_ANCESTORS):
            if pid in self._with_tracker:
                return True
            status = status_of(pid, self._proc)
            if status is None or status.parent <= 1:
                break
            pid = status.parent
        return False

    def _is_watched(self, pid: int) -> bool:
        if pid == os.getpid():
            return False
        with suppress(OSError):
            return self._everyone or os.stat(f"{self._proc}/{pid}").st_uid == os.geteuid()
        return False

    def _named(self, pid: int, status: Status) -> Member | None:
        """The process as a member; None for kernel threads and helpers of multiprocessing and Heapwatch."""
        words = command_of(pid, self._proc)
        if is_tracker(" ".join(words)):
            self._with_tracker.add(status.parent)
            return None
        if not words or is_housekeeper(" ".join(words), " ".join(command_of(status.parent, self._proc))):
            return None
        program = self._program(pid, status)
        return Member(pid, status.started, self._group(pid, status, words, program), "python" in program)

    def _program(self, pid: int, status: Status) -> str:
        """The name of the program's file, also if that was replaced; of the process if it is in memory."""
        with suppress(OSError):  # of another user it may not be read
            file = os.path.basename(os.readlink(f"{self._proc}/{pid}/exe")).removesuffix(" (deleted)")
            return status.name if file.startswith("memfd:") else file
        return status.name

    def _group(self, pid: int, status: Status, words: list[str], program: str) -> str:
        if words[0].startswith(_RAY):
            return self._of_ray(pid, words[0])
        if "python" in program and "python" not in os.path.basename(words[0]):
            return _without_numbers(os.path.basename(words[0]))  # a title that the program has given itself
        if "python" in program and (starter := self._starter(status.parent, words)):
            kind = "data loader workers" if status.name.startswith(_DATA_LOADER) else "workers"
            return f"{kind} of {starter}"
        name = program_name(words, program)
        is_rank = "python" in program and _RANK.search(read(f"{self._proc}/{pid}/environ"))
        return f"ranks of {name}" if is_rank else name

    def _of_ray(self, pid: int, title: str) -> str:
        job = worker_job(pid, self._proc)
        if job is None:
            return _without_numbers(title)
        return f"{_without_numbers(job.actor) if job.actor else 'tasks'} of Ray job {job.job}"

    def _starter(self, parent: int, words: list[str]) -> str:
        """The name of the program that a worker process works for; empty if it is no worker."""
        above = command_of(parent, self._proc)
        if not _is_worker(words, above):
            return ""
        for _ in range(_MOST_ANCESTORS):
            status = status_of(parent, self._proc)
            if status is None:
                break
            next_above = command_of(status.parent, self._proc)
            if not _is_worker(above, next_above):
                return program_name(above, self._program(parent, status))
            parent, above = status.parent, next_above
        return ""


def runs_python(pid: int) -> bool:
    """Whether the program of a process is an interpreter of Python; True where that cannot be read."""
    try:
        return "python" in os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return True


def _is_worker(words: list[str], parent_words: list[str]) -> bool:
    """Whether a process was started by multiprocessing or joblib, or forked without another program."""
    return words == parent_words or any(mark in " ".join(words) for mark in _WORKER_COMMANDS)


def _without_numbers(title: str) -> str:
    """The first word of a title with `*` for numbers, such as `VLLM::Worker_TP*`."""
    return re.sub(r"[^\w.:*-]", "_", re.sub(r"\d+", "*", title.split(" ", 1)[0]))[:_LONGEST_NAME]
