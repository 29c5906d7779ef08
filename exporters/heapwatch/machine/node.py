"""The exporter of a machine: its groups of processes, judged, served and joined to the stack."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from heapwatch.collectors.explanation import ExplanationCollector
from heapwatch.collectors.families import counter, gauge, gauges
from heapwatch.collectors.process import InfoCollector, StandardCollector
from heapwatch.collectors.self_monitoring import ExporterCollector
from heapwatch.http.endpoints import ServedTrainer
from heapwatch.http.server import Server, serve
from heapwatch.http.status import Status
from heapwatch.machine.groups import Groups
from heapwatch.machine.judge import MachineJudge
from heapwatch.measure.process.memory import free_memory, memory_limit
from heapwatch.registration import Registration
from heapwatch.runtime.cleanup import CleanupQueue
from heapwatch.runtime.exposition import Exposition, Snapshots
from heapwatch.runtime.failures import Failures, raised
from heapwatch.runtime.safe_point import DEFAULT_BUDGET, SafePoint

log = logging.getLogger("heapwatch")
DEFAULT_PORT = 7790
FRAMEWORK = "machine"
_AFTER_FAILURE_SECONDS = 10.0


class Node:
    """Watches the machine from a thread of its own until it is stopped.

    Args:
        name: what it is called in the stack.
        everyone: look at processes of other users, too, which needs root.

    Attributes:
        judge: reads and judges.

    """

    def __init__(self, name: str, *, everyone: bool = False) -> None:
        self.name = name
        self.judge = MachineJudge(Groups(everyone=everyone))
        failures = Failures()
        safe_point = SafePoint(failures, budget=DEFAULT_BUDGET)
        exposition = Exposition(failures, safe_point)
        self._cleanups = CleanupQueue(dict, lambda: None, lambda: None)
        self._snapshots = Snapshots(exposition)
        for collector in (
            StandardCollector(),
            InfoCollector(name, FRAMEWORK, ""),
            GroupCollector(self.judge),
            ExplanationCollector(self.judge),
            ExporterCollector(failures, safe_point, lambda: exposition.collect_seconds.copy()),
        ):
            exposition.register(collector)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="heapwatch-node", daemon=True)
        self._server: Server | None = None
        self._registration: Registration | None = None

    def start(self, host: str, port: int, *, join: bool = True, port_search: bool = False) -> str:
        """Begin to watch and to serve; returns the address as `host:port`.

        Args:
            host: the address to listen on.
            port: 0 for any free port.
            join: leave a target file for the stack of this user.
            port_search: take the next free port if this one is taken.

        Raises:
            OSError: the port is taken, or the host is no address of this machine.

        """
        served = ServedTrainer(
            self._snapshots, Status(self.judge.now), self._cleanups, lambda: self.judge.now().as_json()
        )
        self._server = serve(host, port, served, port_search=port_search)
        if join:
            self._registration = Registration(host, self._server.port, trainer=self.name)
            self._registration.refresh()
            self._server.on_observe.append(self._registration.refresh)
        self._thread.start()
        return f"{host}:{self._server.port}"

    def stop(self) -> None:
        """Leave the process that is visited, take the target back, and stop serving."""
        self._stopped.set()
        if self._registration is not None:
            self._registration.remove()
        if self._server is not None:
            self._server.stop()
        self._thread.join(2.0)
        self.judge.stop()

    def _work(self) -> None:
        pause = 0.0
        while not self._stopped.wait(pause):
            try:
                pause = self.judge.step()
            except Exception as error:
                pause = _AFTER_FAILURE_SECONDS
                log.warning("heapwatch: the machine could not be read: %s", raised(error))


class GroupCollector:
    """Memory, growth and number of the processes of each group, and what the kernel ended."""

    name = "groups"

    def __init__(self, judge: MachineJudge) -> None:
        self._judge = judge

    def collect(self) -> Iterable[Metric]:
        """Yield the families; at most a hundred groups have samples of their own."""
        groups = {group.name: group for group in self._judge.exposed()}
        yield gauge(
            "machine_group_memory_bytes",
            "Memory of a group of equal processes: private is the sum, with pages that a fork shares counted "
            "in each; shared is the most shared memory that one of them maps.",
            ("group", "kind"),
            {
                (name, kind): nbytes
                for name, group in groups.items()
                for kind, nbytes in (
                    ("private", group.private if group.members else None),
                    ("shared", group.shared),
                    ("gpu", group.gpu or None),
                )
            },
        )
        yield from gauges(
            "group",
            groups,
            (
                "machine_group_processes",
                "Live processes of a group.",
                lambda group: len(group.members) or None,
            ),
            (
                "machine_group_growing_processes",
                "Processes of a group that grow like the one that grows most.",
                lambda group: len(group.growing) if group.members else None,
            ),
            (
                "machine_group_growth_bytes_per_minute",
                "Growth of a group's private memory in the last 15 minutes; of /dev/shm that of its files.",
                lambda group: group.held_per_minute,
            ),
        )
        yield counter(
            "machine_group_kills",
            "Processes of a group that the kernel ended for lack of memory.",
            "group",
            self._judge.kills,
        )
        yield GaugeMetricFamily(
            "machine_memory_available_bytes",
            "Memory that programs can still take: of the RAM, and below the limit of the control group.",
            free_memory(),
        )
        yield GaugeMetricFamily(
            "machine_memory_limit_bytes", "Memory limit of the control group, else the RAM.", memory_limit()
        )
