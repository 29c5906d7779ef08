"""Sends code to another process and reads its answers from a temporary folder of this command.

The other process looks at the folder: a visit lasts until it is removed. If a process cannot be entered, the
error says why and what to do.
"""

from __future__ import annotations

import os
import platform
import pwd
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from heapwatch import data
from heapwatch.entering import ptrace
from heapwatch.entering.agent import LEAVE, LEFT
from heapwatch.entering.elf import exported
from heapwatch.entering.machine_code import FUNCTIONS
from heapwatch.entering.request import Request
from heapwatch.errors import reason
from heapwatch.measure.process.other_process import is_alive
from heapwatch.runtime.own_files import UnusableFile, read_json

if TYPE_CHECKING:
    from typing_extensions import Self

WAIT_SECONDS = 30.0
_LEAVE_SECONDS = 15.0
_POLL_SECONDS = 0.05
_OLDEST_VERSION = (3, 10)
_REMOTE_EXEC: Callable[[int, str], object] | None = getattr(sys, "remote_exec", None)
_REQUIRED_FUNCTIONS = (*FUNCTIONS, "Py_GetVersion", "Py_AddPendingCall")
_SOON_SECONDS = 1.0  # in which a main thread that runs Python code comes to the next byte code
_WAITING_SECONDS, _SAMPLES = 0.5, 10  # in which it is looked at so often whether the main thread waits
_LONGEST_VERSION = 120
_INJECTED_CODE = Path(__file__).with_name("injected_code.py")
_YAMA_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
_CONTAINER = "in a container it needs the capability SYS_PTRACE: `docker run --cap-add=SYS_PTRACE`"


class CannotEnter(Exception):
    """Nothing can be started inside the process; the message says why, and what to do."""


class EnteredProcess:
    """A process that gets one request, and the folder for its answer; the `with` block removes the folder.

    Args:
        pid: the process.
        remote_exec: `sys.remote_exec` of Python 3.14, or None.

    Raises:
        CannotEnter: there is no such process, this user may not inspect it, it runs in another container, or
            no folder can be created.

    """

    def __init__(self, pid: int, remote_exec: Callable[[int, str], object] | None = _REMOTE_EXEC) -> None:
        self.pid = pid
        self._remote_exec = remote_exec
        self._is_shared = False
        self._process = process_of(pid)
        _check_visible(self._process)
        try:
            self.folder = Path(tempfile.mkdtemp(prefix="heapwatch-"))
        except OSError as error:
            raise CannotEnter(f"there is no folder for the answer: {reason(error)}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # The visit ends with its folder. Rename it first: a file written meanwhile would keep the folder.
        folder = self.folder
        with suppress(OSError):
            folder = self.folder.rename(self.folder.with_name(f"{self.folder.name}-ended"))
        shutil.rmtree(folder, ignore_errors=True)

    def ask(self, action: str, *, wait_seconds: float = WAIT_SECONDS, **details: Any) -> dict[str, Any]:
        """Send a request and return the answer of `heapwatch.entering.agent.answer_to`.

        The process has `wait_seconds` to run Python code.

        Raises:
            CannotEnter: it refuses, ends, does not run a supported version of Python, or does not answer.

        """
        folder = str(self.folder)
        request = {"action": action, "pid": self.pid, "folder": folder, "sender": os.getpid(), **details}
        self._wait_seconds = wait_seconds
        try:
            names = {
                "__name__": "heapwatch.entering",
                "asked": request,
                "folder": folder,
                "packages": [(name, str(path)) for name, path in data.packages().items()],
                "until": time.time() + wait_seconds,
            }
            self._share()
            code = _INJECTED_CODE.read_text(encoding="utf-8")
            if ptrace.IS_SUPPORTED:
                return self._by_ptrace(_text(code, names), wait_seconds)
            if self._remote_exec is not None and self._same_version():
                return self._by_remote_exec(self._remote_exec, _script(code, names), wait_seconds)
            raise CannotEnter(
                "a process of Python below 3.14 can be entered on Linux on x86-64; this is"
                f" {platform.system()} on {platform.machine()}. From 3.14 on, run this with the Python of the"
                " process"
            )
        except (psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError):
            raise CannotEnter(f"process {self.pid} has ended") from None
        except ptrace.NotStopped as error:
            raise CannotEnter(f"process {self.pid} {error}") from None
        except PermissionError:
            raise _denied(self.pid) from None
        except OSError as error:
            raise CannotEnter(f"process {self.pid} cannot be entered: {reason(error)}") from None

    def latest(self, name: str) -> Any:
        """Read a document that the process writes into the folder; None until it exists.

        Raises:
            CannotEnter: the file is not such a document.

        """
        try:
            return read_json(self.folder / name, most=4 * 2**20, any_owner=self._is_shared)
        except FileNotFoundError:
            return None
        except UnusableFile as error:
            raise CannotEnter(f"process {self.pid} does not answer as Heapwatch does: {error}") from None

    def leave(self, seconds: float = _LEAVE_SECONDS) -> bool:
        """Request the end of the visit; return whether the process confirmed it in this time."""
        with suppress(OSError):
            (self.folder / LEAVE).touch()
        deadline = time.monotonic() + seconds
        while self.is_alive() and time.monotonic() < deadline:
            if (self.folder / LEFT).exists():
                return True
            time.sleep(_POLL_SECONDS)
        return (self.folder / LEFT).exists()

    def is_alive(self) -> bool:
        """Whether the process has not ended."""
        return is_alive(self._process)

    def _share(self) -> None:
        """Make the owner of the process the owner of the folder, if root enters another user's process."""
        uids, gids = self._process.uids(), self._process.gids()
        self._is_shared = os.geteuid() == 0 and uids.effective != 0
        if self._is_shared:
            os.chown(self.folder, uids.effective, gids.effective)

    def _same_version(self) -> bool:
        program = os.path.basename(self._process.exe())
        return program.endswith(f"python{sys.version_info[0]}.{sys.version_info[1]}")

    def _by_remote_exec(
        self, remote_exec: Callable[[int, str], object], code: str, seconds: float
    ) -> dict[str, Any]:
        """Enter by `sys.remote_exec`, which runs a file at the next safe point of the main thread."""
        script = self.folder / "first.py"
        script.write_text(code, encoding="ascii")
        script.chmod(0o644)
        try:
            remote_exec(self.pid, str(script))
            document = self._wait_for_answer(seconds)
            if document is None and not self._is_taken():
                remote_exec(self.pid, os.devnull)  # replaces the script, which is deleted after this
        except PermissionError:
            raise
        except (OSError, RuntimeError, ValueError) as error:
            raise CannotEnter(f"process {self.pid} does not run code from outside: {error}") from None
        return self._checked(document)

    def _by_ptrace(self, text: str, seconds: float) -> dict[str, Any]:
        """Enter by `ptrace`: the main thread starts another, between byte codes or at once if it waits."""
        with ptrace.Memory(self.pid) as memory:
            functions = exported(self.pid, _REQUIRED_FUNCTIONS)
            if not functions:
                raise _no_interpreter(self.pid, self._process.exe())
            try:
                request = Request(self.pid, memory, functions, text)
            except ValueError as error:
                raise CannotEnter(f"process {self.pid} cannot be entered: {error}") from None
            deadline = time.monotonic() + seconds
            try:
                self._send(request, memory, functions, waits=self._only_waits())
                while (
                    document := self._wait_for_answer(min(_SOON_SECONDS, deadline - time.monotonic()))
                ) is None:
                    if self._is_taken() or time.monotonic() >= deadline:
                        break
                    if self._only_waits():
                        self._send(request, memory, functions, waits=True)
            finally:
                request.withdraw()
        return self._checked(document)

    def _send(
        self, request: Request, memory: ptrace.Memory, functions: Mapping[str, int], *, waits: bool
    ) -> None:
        def deliver() -> None:
            with ptrace.Tracee(self.pid, memory) as thread:
                thread.code(functions)
                if thread.call(functions["Py_IsInitialized"]) != 1:
                    raise CannotEnter(f"process {self.pid} is just starting or ending its interpreter")
                self._check_version(
                    thread.read_text(thread.call(functions["Py_GetVersion"]), _LONGEST_VERSION)
                )
                if waits and thread.waits():
                    request.begin(thread)
                else:
                    request.queue(thread)

        # The kernel detaches when the tracing thread ends. Ctrl-C does not interrupt this one.
        with ThreadPoolExecutor(1) as tracer:
            tracer.submit(deliver).result()

    def _only_waits(self) -> bool:
        """Whether the main thread stays in the same system call for half a second."""
        call = Path(f"/proc/{self.pid}/syscall").read_text()
        for _ in range(_SAMPLES):
            if call.startswith("running"):
                return False
            time.sleep(_WAITING_SECONDS / _SAMPLES)
            if Path(f"/proc/{self.pid}/syscall").read_text() != call:
                return False
        return True

    def _check_version(self, version: str) -> None:
        match = re.match(r"(\d+)\.(\d+)", version)
        if match is None or (int(match[1]), int(match[2])) < _OLDEST_VERSION:
            raise CannotEnter(
                f"process {self.pid} runs Python {version.split()[0] if version else '?'};"
                f" Heapwatch takes {'.'.join(map(str, _OLDEST_VERSION))} or newer"
            )

    def _checked(self, document: Any) -> dict[str, Any]:
        """Return the answer; wait longer for it if the process has started the request."""
        if document is None and self._is_taken():
            document = self._wait_for_answer(WAIT_SECONDS)  # imports take a while on a busy machine
        if document is None:
            raise CannotEnter(
                f"process {self.pid} has not run Python code in its main thread for"
                f" {self._wait_seconds:.0f} s; it continues unchanged, and is not entered later"
            )
        if not isinstance(document, dict):
            raise CannotEnter(f"process {self.pid} does not answer as Heapwatch does")
        if "error" in document:
            raise CannotEnter(f"process {self.pid} {document['error']}")
        return document

    def _is_taken(self) -> bool:
        """Whether the process has started to execute the request."""
        return (self.folder / "taken").exists()

    def _wait_for_answer(self, seconds: float) -> Any:
        """Return the answer; None if it does not come in time."""
        deadline = time.monotonic() + seconds
        while (document := self.latest("answer.json")) is None and time.monotonic() < deadline:
            if not self.is_alive():
                raise CannotEnter(f"process {self.pid} has ended")
            if (self.folder / "unable").exists():
                raise CannotEnter(
                    f"process {self.pid} cannot import what it needs, or has too many files open"
                )
            time.sleep(_POLL_SECONDS)
        return document


def _text(code: str, names: dict[str, Any]) -> str:
    """Return Python code that runs `code` in a namespace of its own, apart from the program's."""
    # The interpreter would print an exception.
    return f"try:\n    __import__('builtins').exec({code!a}, {names!a})\nexcept:\n    pass\n"


def _script(code: str, names: dict[str, Any]) -> str:
    """Return the same for `sys.remote_exec`, which runs it in the main thread."""
    return f"__import__('_thread').start_new_thread(exec, ({code!a}, {names!a}))\n"


def process_of(pid: int) -> psutil.Process:
    """Return the process; raise CannotEnter if it does not exist or this user may not inspect it."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            raise CannotEnter(f"process {pid} has ended already")
        process.memory_info()
    except (psutil.NoSuchProcess, ValueError, OverflowError):
        raise CannotEnter(f"there is no process {pid}") from None
    except psutil.AccessDenied:
        raise CannotEnter(f"this user may not inspect process {pid}; run as its owner, or as root") from None
    if process.pid == os.getpid():
        raise CannotEnter(f"process {pid} is heapwatch itself; give the trainer's process id")
    return process


def _check_visible(process: psutil.Process) -> None:
    """Raise CannotEnter for a process that is stopped, in another container, or has a shadow stack."""
    pid = process.pid
    for kind in ("pid", "mnt"):
        try:
            other = os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}")
        except OSError:
            continue  # the attempt to enter will report the reason
        if other:
            raise CannotEnter(
                f"process {pid} runs in another container: run this command inside it, such as"
                f" `docker exec CONTAINER heapwatch attach PID`, with the PID that the process has there"
            )
    if _status(pid).get("x86_Thread_features", "").find("shstk") >= 0:
        raise CannotEnter(f"process {pid} has a shadow stack, which allows no call from outside")
    try:
        stopped = process.status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        raise CannotEnter(f"process {pid} has ended") from None
    if stopped:
        raise CannotEnter(f"process {pid} is stopped: continue it first with `kill -CONT {pid}`")


def _denied(pid: int) -> CannotEnter:
    """Return an error that says why the kernel does not let this user trace the process."""
    status = _status(pid)
    if tracer := ptrace.tracer_of(pid):
        return CannotEnter(f"process {pid} is held by another program, debugger or visit: process {tracer}")
    owner, is_root = int((status.get("Uid") or "0").split()[0]), os.geteuid() == 0
    if owner != os.geteuid() and not is_root:
        return CannotEnter(
            f"process {pid} belongs to {_name(owner)}: run this as {_name(owner)}, or with sudo"
        )
    try:
        scope = int(_YAMA_SCOPE.read_text())
    except (OSError, ValueError):
        scope = 0
    if scope == 3:
        return CannotEnter(
            "this system forbids it (kernel.yama.ptrace_scope=3) until it is restarted with another setting:"
            " start the program with `heapwatch run` instead"
        )
    if scope and not is_root:
        return CannotEnter(
            f"this system lets a user trace only own child processes (kernel.yama.ptrace_scope={scope}):"
            f" run this with sudo, or `sudo sysctl kernel.yama.ptrace_scope=0`, or start the program with"
            " `heapwatch run`"
        )
    return CannotEnter(f"the kernel refuses to trace process {pid}; {_CONTAINER}")


def _no_interpreter(pid: int, program: str) -> CannotEnter:
    """Return the error for a process that does not export the functions of the interpreter."""
    if "python" in os.path.basename(program).lower():
        return CannotEnter(
            f"process {pid} runs an interpreter that exports no functions (a static or stripped build, or"
            " its file was replaced since): start the program with `heapwatch run`"
        )
    return CannotEnter(f"process {pid} ({os.path.basename(program)}) does not run Python")


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
