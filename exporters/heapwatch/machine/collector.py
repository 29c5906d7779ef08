"""The groups of a machine as series."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from heapwatch.collectors.families import counter, gauge, gauges
from heapwatch.machine.judge import MachineJudge
from heapwatch.measure.process.memory import free_memory, memory_limit


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
