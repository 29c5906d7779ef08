"""How Prometheus finds a trainer: one file_sd target each, written atomically and removed at the end.

On the same machine a process is looked up to see whether it ended. A target from elsewhere, such as another
container that shares the folder, expires unless its trainer renews it.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psutil

from heapwatch import lost
from heapwatch.lost import Lost
from heapwatch.measure.kernel_kills import KernelKills
from heapwatch.runtime.machine import boot

# Prometheus drops labels of this kind after discovery: they name the owner in the file and reach no series.
_OWNER_LABEL = "__meta_heapwatch_owner"
_TRAINER_LABEL = "__meta_heapwatch_trainer"
# Only a target that says so expires: trainers with an older library do not renew theirs.
_LIFETIME_LABEL = "__meta_heapwatch_lifetime_seconds"
_PARTIAL_SECONDS = 60.0
RENEWAL_SECONDS = 600.0
LIFETIME_SECONDS = 4 * RENEWAL_SECONDS


@dataclass(frozen=True)
class Owner:
    """The process that owns a target, identified across reboots and containers."""

    host: str
    boot: str
    pid_namespace: str
    pid: int
    started: float

    @classmethod
    def current(cls, pid: int | None = None) -> Owner:
        """Return the owner for a process of this machine; this one by default.

        Raises:
            ProcessLookupError: there is no such process.

        """
        pid = os.getpid() if pid is None else pid
        started = _started(pid)
        if started is None:
            raise ProcessLookupError(f"there is no process {pid}")
        return cls(*_machine(), pid, started)

    def is_gone(self) -> bool:
        """Return whether the process has certainly ended; never true for another machine's processes."""
        host, booted, _ = _machine()
        if self.host == host and self.boot != booted:
            return True
        try:
            return self.is_visible() and _started(self.pid) != self.started
        except psutil.AccessDenied:
            return False

    def is_visible(self) -> bool:
        """Return whether this process could see the owner: same machine, boot and pid namespace."""
        return (self.host, self.boot, self.pid_namespace) == _machine()


class TargetFile:
    """The file_sd file that makes Prometheus scrape `host:port`.

    Args:
        directory: where Prometheus looks; made when it is missing.
        host: the address listened on; a wildcard address is published as this machine's name.
        port: the real port, after binding.
        pid: the process that owns the target; this one by default.
        trainer: the trainer's name, for the alert about its end.

    """

    def __init__(
        self, directory: Path, host: str, port: int, *, pid: int | None = None, trainer: str = ""
    ) -> None:
        self.address = _address(host, port)
        name = re.sub(r"[^A-Za-z0-9.-]", "_", f"{socket.gethostname()}_{self.address}")
        self.path = directory / f"{name}.json"
        self._owner = Owner.current(pid)
        self._trainer = trainer
        self._writer = os.getpid()
        self._renewed = -math.inf

    def write(self) -> None:
        """Write the target; a reader sees the whole file or none of it.

        A trainer whose target is still at this address has ended without saying goodbye, and is kept as lost.

        Raises:
            OSError: the directory cannot be written.

        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        labels = {
            _OWNER_LABEL: json.dumps(asdict(self._owner)),
            _TRAINER_LABEL: self._trainer,
            _LIFETIME_LABEL: f"{LIFETIME_SECONDS:g}",
        }
        if _owner_of(self.path) not in (None, self._owner):
            _keep(self.path.parent, _lost(self.path, lost.UNKNOWN))
        content = json.dumps([{"targets": [self.address], "labels": labels}], indent=2) + "\n"
        # The suffix keeps Prometheus' *.json from seeing it; same folder, because a rename must not copy.
        descriptor, partial = tempfile.mkstemp(
            prefix=f".{self.path.stem}", suffix=".tmp", dir=self.path.parent
        )
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(content)
                os.fchmod(file.fileno(), 0o644)  # Prometheus may run as another user
            os.replace(partial, self.path)
            self._renewed = time.monotonic()
        except BaseException:
            with suppress(OSError):
                os.unlink(partial)
            raise

    def renew(self) -> bool:
        """Renew the target when that is due; returns whether it was.

        Raises:
            OSError: the file is gone, or is another user's.

        """
        if time.monotonic() - self._renewed < RENEWAL_SECONDS:
            return False
        os.utime(self.path)
        self._renewed = time.monotonic()
        return True

    def lose(self, cause: str) -> None:
        """Remove the target, and keep the trainer as lost: it has failed."""
        if os.getpid() == self._writer and _owner_of(self.path) == self._owner:
            _keep(self.path.parent, _lost(self.path, cause))
            self.remove()

    def remove(self) -> None:
        """Remove the target, unless this is a forked child or another trainer has taken the address over."""
        if os.getpid() == self._writer and _owner_of(self.path) == self._owner:
            with suppress(OSError):
                self.path.unlink(missing_ok=True)


def sweep(directory: Path, kills: KernelKills | None = None) -> list[Path]:
    """Remove expired targets, and those of trainers of this machine that did not remove theirs; returns them.

    Files that heapwatch did not write stay. The trainers of the others are kept as lost, with the cause if it
    is known: `kills` knows it if it has seen the trainer in an earlier sweep.
    """
    swept = []
    alive = []
    for partial in directory.glob(".*.tmp"):
        with suppress(OSError):
            if time.time() - partial.stat().st_mtime > _PARTIAL_SECONDS:
                partial.unlink()
    for path in sorted(directory.glob("*.json")):
        owner = _owner_of(path)
        if owner is None:
            continue
        if owner.is_gone() or (not owner.is_visible() and _expired(path)):
            gone = _lost(path, _cause(owner, kills or KernelKills()))
            with suppress(OSError):
                path.unlink()  # fails in all but one of several that sweep at the same time
                swept.append(path)
                _keep(directory, gone)
        elif owner.is_visible():
            alive.append(owner.pid)
    if kills is not None:
        kills.look(alive)
    return swept


def _cause(owner: Owner, kills: KernelKills) -> str:
    host, booted, _ = _machine()
    if owner.host == host and owner.boot != booted:
        return lost.REBOOTED
    if not owner.is_visible():
        return lost.SILENT
    reasons = {"out of memory": lost.OUT_OF_MEMORY, "segmentation fault": lost.CRASHED, None: lost.UNKNOWN}
    return reasons[kills.reason(owner.pid)]


def _lost(path: Path, cause: str) -> Lost | None:
    """The trainer of a target, as lost now; None if the target cannot be read."""
    with suppress(OSError, ValueError, LookupError):
        group = json.loads(path.read_text(encoding="utf-8"))[0]
        trainer = str(group["labels"].get(_TRAINER_LABEL, ""))
        return Lost(group["targets"][0], trainer, cause, time.time())
    return None


def _keep(directory: Path, gone: Lost | None) -> None:
    if gone is not None:
        with suppress(OSError):
            lost.write(directory / lost.FOLDER, gone)


def addresses(directory: Path) -> list[str]:
    """Return the addresses of all targets that heapwatch wrote and whose trainers may live."""
    found = []
    for path in sorted(directory.glob("*.json")):
        owner = _owner_of(path)
        if owner is not None and not owner.is_gone():
            with suppress(OSError, ValueError, LookupError):
                found += json.loads(path.read_text(encoding="utf-8"))[0]["targets"]
    return found


def addresses_of(directory: Path, pid: int) -> list[str]:
    """Return the addresses that a live process of this machine serves at."""
    found = []
    for path in sorted(directory.glob("*.json")):
        owner = _owner_of(path)
        if owner is not None and owner.pid == pid and not owner.is_gone():
            with suppress(OSError, ValueError, LookupError):
                found += json.loads(path.read_text(encoding="utf-8"))[0]["targets"]
    return found


def _owner_of(path: Path) -> Owner | None:
    try:
        groups: Any = json.loads(path.read_text(encoding="utf-8"))
        return Owner(**json.loads(groups[0]["labels"][_OWNER_LABEL]))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _expired(path: Path) -> bool:
    try:
        lifetime = float(json.loads(path.read_text(encoding="utf-8"))[0]["labels"][_LIFETIME_LABEL])
        return time.time() - path.stat().st_mtime > lifetime
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _address(host: str, port: int) -> str:
    if host in ("", "0.0.0.0", "::"):
        host = socket.gethostname()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _started(pid: int) -> float | None:
    """When a live process started: on Linux in ticks since boot, which no clock change moves."""
    try:
        # Fields after the command, whose own text may hold spaces and parentheses: proc(5).
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
        return None if fields[0] in "ZX" else float(fields[19])
    except OSError:
        pass
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else round(process.create_time(), 2)
    except psutil.NoSuchProcess:
        return None


@cache
def _machine() -> tuple[str, str, str]:
    """Host name, boot, and pid namespace: containers of one machine may share the first two."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return socket.gethostname(), boot(), namespace
