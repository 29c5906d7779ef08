"""Why a process cannot be entered, in the words of the person who asks."""

from __future__ import annotations

import os
import platform
import pwd
from pathlib import Path

import psutil

from heapwatch.entering.ptrace import tracer_of

_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
_TRACING = 19  # the bit of CAP_SYS_PTRACE


class CannotEnter(Exception):
    """Nothing can be started inside the process; the message says why, and what to do."""


def check_visible(process: psutil.Process) -> None:
    """Raise CannotEnter for a process of another container, which does not see the files of this package."""
    pid = process.pid
    for kind in ("pid", "mnt"):
        try:
            other = os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}")
        except OSError:
            continue  # then the kernel refuses for a reason of its own
        if other:
            raise CannotEnter(
                f"process {pid} runs in another container: run this command inside it, such as"
                f" `docker exec CONTAINER heapwatch attach PID`, with the PID that the process has there"
            )
    if _status(pid).get("x86_Thread_features", "").find("shstk") >= 0:
        raise CannotEnter(f"process {pid} has a shadow stack, which allows no call from outside")
    if process.status() == psutil.STATUS_STOPPED:
        raise CannotEnter(f"process {pid} is stopped: continue it first with `kill -CONT {pid}`")


def denied(pid: int) -> CannotEnter:
    """Why the kernel lets this user trace no such process."""
    status = _status(pid)
    if tracer := tracer_of(pid):
        return CannotEnter(f"process {pid} is held by another program, such as a debugger: process {tracer}")
    owner = int((status.get("Uid") or "0").split()[0])
    may_all = bool(int(_status(os.getpid()).get("CapEff", "0"), 16) >> _TRACING & 1)
    if owner != os.geteuid() and not may_all:
        if os.geteuid() == 0:
            return CannotEnter(f"process {pid}: {_CONTAINER}")
        return CannotEnter(
            f"process {pid} belongs to {_name(owner)}: run this as {_name(owner)}, or with sudo"
        )
    try:
        scope = int(_YAMA.read_text())
    except (OSError, ValueError):
        scope = 0
    if scope == 3:
        return CannotEnter(
            "this system forbids it (kernel.yama.ptrace_scope=3) until it is restarted with another setting:"
            " start the program with `heapwatch run` instead"
        )
    if scope and not may_all:
        if os.geteuid() == 0:
            return CannotEnter(f"process {pid}: {_CONTAINER}")
        return CannotEnter(
            f"this system lets a user trace only own child processes (kernel.yama.ptrace_scope={scope}):"
            f" run this with sudo, or `sudo sysctl kernel.yama.ptrace_scope=0`, or start the program with"
            " `heapwatch run`"
        )
    return CannotEnter(f"the kernel refuses to trace process {pid}; {_CONTAINER}")


_CONTAINER = "in a container it needs the capability SYS_PTRACE: `docker run --cap-add=SYS_PTRACE`"


def no_interpreter(pid: int, program: str) -> CannotEnter:
    """Nothing in the process exports what is needed."""
    if "python" in os.path.basename(program).lower():
        return CannotEnter(
            f"process {pid} runs an interpreter that exports no functions (a static or stripped build, or"
            " its file was replaced since): start the program with `heapwatch run`"
        )
    return CannotEnter(f"process {pid} ({os.path.basename(program)}) does not run Python")


def unsupported() -> CannotEnter:
    """The machine is none on which a process of this Python can be entered."""
    return CannotEnter(
        "a process of Python below 3.14 can be entered on Linux on x86-64; this is"
        f" {platform.system()} on {platform.machine()}. From 3.14 on, run this with the Python of the process"
    )


def _status(pid: int) -> dict[str, str]:
    try:
        text = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
