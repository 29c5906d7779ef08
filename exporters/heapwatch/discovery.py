"""Registers trainers with Prometheus: one file_sd target each, written atomically and removed at the end.

A target of this machine is removed when its process has ended. A target from elsewhere, such as another
container that shares the folder, expires unless its trainer renews it.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil

from heapwatch import lost
from heapwatch.lost import Lost
from heapwatch.measure.process.procfs import status_of
from heapwatch.runtime.labels import boot
from heapwatch.runtime.own_files import make_private, read_json, replace

if TYPE_CHECKING:
    from heapwatch.measure.process.kernel_kills import KernelKills

# Prometheus drops labels of this kind after discovery: they name the owner in the file and reach no series.
_OWNER_LABEL = "__meta_heapwatch_owner"
_TRAINER_LABEL = "__meta_heapwatch_trainer"
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
    def current(cls) -> Owner:
        """The running process."""
        return cls(*_machine(), os.getpid(), _started(os.getpid()) or 0.0)

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
        trainer: its name, for the alert about its end.

    """

    def __init__(self, directory: Path, host: str, port: int, *, trainer: str = "") -> None:
        self.address = _address(host, port)
        name = re.sub(r"[^A-Za-z0-9.-]", "_", f"{socket.gethostname()}_{self.address}")
        self.path = directory / f"{name}.json"
        self._owner = Owner.current()
        self._trainer = trainer
        self._renewed = -math.inf

    def write(self) -> None:
        """Write the target; a reader sees the whole file or none of it.

        If the target of another trainer is at this address, that trainer has ended unexpectedly and is
        recorded as lost.

        Raises:
            OSError: the directory cannot be written.

        """
        make_private(self.path.parent)
        labels = {_OWNER_LABEL: json.dumps(asdict(self._owner)), _TRAINER_LABEL: self._trainer}
        target = _read(self.path)
        if target is not None and target.owner != self._owner:
            _keep(target, lost.UNKNOWN)
        content = json.dumps([{"targets": [self.address], "labels": labels}], indent=2) + "\n"
        replace(self.path, content, 0o644)  # Prometheus may run as another user
        self._renewed = time.monotonic()

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

    def remove(self, failure: str = "") -> None:
        """Remove the target, unless another trainer has taken the address over.

        With a `failure`, which says why the trainer failed, it is kept as lost.
        """
        target = _read(self.path)
        if target is None or target.owner != self._owner:
            return
        if failure:
            _keep(target, failure)
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


class _Target(NamedTuple):
    """The content of a target file of this user."""

    path: Path
    owner: Owner
    trainer: str
    addresses: list[str]

    def is_dead(self) -> bool:
        """Whether its trainer has certainly ended, or has not renewed it in time."""
        return self.owner.is_gone() or (not self.owner.is_visible() and self._has_expired())

    def _has_expired(self) -> bool:
        try:
            return time.time() - self.path.lstat().st_mtime > LIFETIME_SECONDS
        except OSError:
            return False


def sweep(directory: Path, kills: KernelKills | None = None) -> list[Path]:
    """Remove expired targets, and those of trainers of this machine that did not remove theirs; returns them.

    Only files of this user go that carry heapwatch's own label; everything else stays. Their trainers are
    kept as lost, with the cause if it is known: `kills` knows it if it has seen the trainer in an earlier
    sweep.
    """
    swept = []
    alive = []
    for target in _targets(directory):
        if target.is_dead():
            cause = _cause(target.owner, kills)
            with suppress(OSError):
                target.path.unlink()  # fails in all but one of several that sweep at the same time
                swept.append(target.path)
                _keep(target, cause)
        elif target.owner.is_visible():
            alive.append(target.owner.pid)
    if kills is not None:
        kills.update(alive)
    return swept


def _cause(owner: Owner, kills: KernelKills | None) -> str:
    host, booted, _ = _machine()
    if owner.host == host and owner.boot != booted:
        return lost.REBOOTED
    if not owner.is_visible():
        return lost.SILENT
    return lost.OUT_OF_MEMORY if kills is not None and kills.has_killed(owner.pid) else lost.UNKNOWN


def _keep(target: _Target, cause: str) -> None:
    """Keep the trainer of a target as lost now."""
    for address in target.addresses[:1]:
        with suppress(OSError):
            lost.write(target.path.parent / lost.FOLDER, Lost(address, target.trainer, cause, time.time()))


def addresses(directory: Path, pid: int | None = None, trainer: str | None = None) -> list[str]:
    """The addresses of the targets of this user whose trainers may live; of this process or name only."""
    return [
        address
        for target in _targets(directory)
        if pid in (None, target.owner.pid) and trainer in (None, target.trainer)
        if not target.owner.is_gone()
        for address in target.addresses
    ]


def processes(directory: Path) -> dict[int, str]:
    """The address of each live process of this machine that has a target of this user, by its id."""
    return {
        target.owner.pid: target.addresses[0]
        for target in _targets(directory)
        if target.addresses and target.owner.is_visible() and not target.owner.is_gone()
    }


def _targets(directory: Path) -> list[_Target]:
    return [target for path in sorted(directory.glob("*.json")) if (target := _read(path)) is not None]


def _read(path: Path) -> _Target | None:
    """The target in a file; None if Heapwatch did not write it."""
    try:
        group: Any = read_json(path)[0]
        owner = Owner(**json.loads(group["labels"][_OWNER_LABEL]))
        trainer = str(group["labels"].get(_TRAINER_LABEL, ""))
        return _Target(path, owner, trainer, [str(address) for address in group["targets"]])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _address(host: str, port: int) -> str:
    if host in ("", "0.0.0.0", "::"):
        host = socket.gethostname()
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _started(pid: int) -> float | None:
    """When a live process started: on Linux in seconds since boot, which no clock change moves."""
    status = status_of(pid)
    if status is not None:
        return None if status.state in "ZX" else status.started
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
