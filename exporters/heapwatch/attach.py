"""An exporter for a process that cannot be changed: its memory, seen from outside, under the same names."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress

import psutil
from prometheus_client import CollectorRegistry, Metric
from prometheus_client import ProcessCollector as StandardProcessCollector
from prometheus_client.core import GaugeMetricFamily

from heapwatch.collectors.gpu import GpuCollector
from heapwatch.collectors.process import InfoCollector, ProcessCollector, UniqueMemoryCollector
from heapwatch.collectors.self_monitoring import ExporterCollector
from heapwatch.http.endpoints import ServedTrainer
from heapwatch.http.server import DEFAULT_PORT, Server
from heapwatch.http.status import Status
from heapwatch.measure.gpu import NvmlSession
from heapwatch.measure.process.process_tree import ProcessTree
from heapwatch.registration import Registration
from heapwatch.runtime.exposition import Exposition, Snapshots
from heapwatch.runtime.failures import Failures
from heapwatch.runtime.safe_point import DEFAULT_BUDGET, SafePoint

_POLL_SECONDS = 1.0


class CannotAttach(Exception):
    """There is no such process, or this user may not inspect it."""


class Attachment:
    """The server and the target of one process.

    Its children count as its workers. Without a name it has that of its script, module or program. The server
    is that of `heapwatch.http.server`.

    Raises:
        CannotAttach: see there.

    """

    def __init__(
        self,
        pid: int,
        *,
        name: str | None = None,
        host: str = "127.0.0.1",
        port: int = DEFAULT_PORT,
        port_search: bool = False,
    ) -> None:
        self._process = process_of(pid)
        self.name = name or name_of(self._process)
        failures, tree = Failures(), ProcessTree(pid)
        # Nothing is sampled inside the foreign process, so its safe point never comes.
        exposition = Exposition(failures, idle := SafePoint(failures, budget=DEFAULT_BUDGET))
        for collector in (
            InfoCollector(self.name, "attached", str(pid)),
            unique := UniqueMemoryCollector(tree),
            ProcessCollector(tree, lambda: unique.workers),
            AttachedStandardCollector(pid),
            OpenFilesCollector(tree),
            GpuCollector(failures, tree, NvmlSession(environment=_environment(self._process))),
            ExporterCollector(failures, idle, lambda: exposition.collect_seconds.copy()),
        ):
            exposition.register(collector)
        trainer = ServedTrainer(Snapshots(exposition), Status())
        self.server = Server(host, port, trainer, port_search=port_search)
        self._host = host
        self.registration: Registration | None = None

    def start(self) -> None:
        """Serve, and join the running stack.

        Raises:
            OSError: the port is taken (the message names its owner).

        """
        self.server.start()
        # The target stands for this exporter, not for the process: it is what answers the scrape.
        self.registration = Registration(self._host, self.server.port, trainer=self.name)
        self.registration.refresh()
        self.server.on_observe.append(self.registration.refresh)

    def stop(self) -> None:
        """Stop serving and remove the target. A second call does nothing."""
        if self.registration is not None:
            self.registration.remove()
            self.registration = None
        self.server.stop()

    def wait_until_ended(self) -> None:
        """Return when the process has ended."""
        while is_alive(self._process):
            time.sleep(_POLL_SECONDS)


class AttachedStandardCollector:
    """The Python client's `process_*` of the process, `process_start_time_seconds` among them."""

    name = "standard"

    def __init__(self, pid: int) -> None:
        self._registry = CollectorRegistry()
        StandardProcessCollector(pid=lambda: pid, registry=self._registry)

    def collect(self) -> Iterable[Metric]:
        """Yield the families that can be read."""
        return self._registry.collect()


class OpenFilesCollector:
    """Open file descriptors of the process and of its children."""

    name = "open_files"

    def __init__(self, tree: ProcessTree) -> None:
        self._tree = tree

    def collect(self) -> Iterable[Metric]:
        """Yield the counts that this user may read."""
        family = GaugeMetricFamily("trainer_process_open_files", "Open file descriptors.", labels=["role"])
        groups = {"trainer": [self._tree.trainer], "worker": self._tree.workers()}
        for role, processes in groups.items():
            counts = [count for count in map(_open_files, processes) if count is not None]
            if counts:
                family.add_metric([role], sum(counts))
        yield family


def process_of(pid: int) -> psutil.Process:
    """The process, which this user may look at; raises CannotAttach."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            raise CannotAttach(f"process {pid} has ended already")
        process.memory_info()
    except (psutil.NoSuchProcess, ValueError, OverflowError):
        raise CannotAttach(f"there is no process {pid}") from None
    except psutil.AccessDenied:
        raise CannotAttach(f"this user may not inspect process {pid}; run as its owner, or as root") from None
    if process.pid == os.getpid():
        raise CannotAttach(f"process {pid} is heapwatch itself; give the trainer's process id")
    return process


def is_alive(process: psutil.Process) -> bool:
    """Whether a process still runs; a zombie does not, and another process with its pid is not it."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def name_of(process: psutil.Process) -> str:
    """Return the name of Python's script or module, else the program's; other words may be secret."""
    try:
        words = iter(process.cmdline()[1:] if "python" in process.name() else ())
    except psutil.Error:
        words = iter(())
    name = ""
    for word in words:
        if word in ("-X", "-W"):
            next(words, "")
        elif word == "-m":
            name = next(words, "")
        elif not word.startswith("-"):
            name = os.path.splitext(os.path.basename(word))[0]
        if name or word in ("-", "-c"):
            break
    if not name:
        with suppress(psutil.Error):  # it may just have ended
            name = process.name()
    return re.sub(r"[^\w.-]", "_", name)[:64] or str(process.pid)


def _environment(process: psutil.Process) -> dict[str, str]:
    """Return the variables that select the GPUs of the process; none where this user may not read them."""
    try:
        return process.environ()
    except (psutil.Error, OSError):
        return {}


def _open_files(process: psutil.Process) -> int | None:
    try:
        return process.num_fds()
    except psutil.Error:
        return None
