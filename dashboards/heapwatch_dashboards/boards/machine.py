"""One machine: which of its groups of processes grows, what in it, and how much memory is left."""

from dataclasses import replace

from .. import colors
from ..dashboard import Dashboard, Row
from ..empty import HOW_TO_WATCH, NO_MACHINE
from ..panel import BYTES, COUNT, SHARE, Query, fixed, override
from ..panels import alarm, limit, lines, number
from ..promql import increment_from_zero, or_zero, select, sum_by, total
from ..tables import WRAPPED, Column, table
from .shared import BELOW_WARNING, USED, firing_alerts, what_grows
from .trainer import FORECAST, VERDICT, VERDICT_OVER_TIME

_PRIVATE = select("machine_group_memory_bytes", kind="private")
_PROCESSES = select("machine_group_processes")
_GROWTH = select("machine_group_growth_bytes_per_minute")
_KILLS = select("machine_group_kills_total")
AVAILABLE = total(select("machine_memory_available_bytes"))
LIMIT = total(select("machine_memory_limit_bytes"))
# A machine has up to a hundred groups. More than a few bands cannot be told apart.
_LARGEST = f"topk(8, max_over_time({_PRIVATE}[$__range] @ end()))"

GLANCE = [
    replace(VERDICT, width=0, height=3, empty=NO_MACHINE),
    number("Available", AVAILABLE, BYTES, "Memory that programs can still take."),
    number(
        "Used of the limit",
        f"1 - {AVAILABLE} / {LIMIT}",
        SHARE,
        f"What is not available, over the limit: the container's, else the RAM. Good: {BELOW_WARNING}.",
        thresholds=USED,
    ),
    number("Processes", total(_PROCESSES), COUNT, "Live processes of all groups. Good: steady."),
    number("Growth per minute", total(_GROWTH), BYTES, "Of all groups, in the last quarter of an hour."),
    FORECAST,
    alarm(
        "Kernel kills",
        or_zero(total(_KILLS), LIMIT),
        colors.CRITICAL,
        "Processes that the kernel killed for lack of memory since the exporter began. Good: 0.",
    ),
]
GROWS = [what_grows(Column("Type and group", label="type", width=200, cell=WRAPPED))]
MEMORY = [
    lines(
        "Memory of groups",
        [
            Query(sum_by("group", f"{_PRIVATE} and {_LARGEST}"), "{{group}}"),
            Query(total(f"{_PRIVATE} unless {_LARGEST}"), "smaller groups"),
            limit(LIMIT, total(_PRIVATE), "memory limit"),
        ],
        BYTES,
        "Private memory of the largest groups of equal processes, stacked. Pages that forked processes share "
        "count in each. Good: bands flat. Bad: one band widens for ever. Dashed: the limit, once it is near.",
        style="areas",
        overrides=[override("smaller groups", color=fixed(colors.UNKNOWN))],
        width=14,
        marked=True,
    ),
    lines(
        "Memory available",
        [Query(AVAILABLE, "available"), limit(LIMIT, AVAILABLE, "memory limit")],
        BYTES,
        "Memory that programs can still take, and the limit. Good: far above zero. Bad: falls towards it.",
        marked=True,
    ),
]

GROUPS = table(
    "Groups of processes",
    [
        Column("Group", label="group", cell=WRAPPED),
        Column("Processes", sum_by("group", _PROCESSES), COUNT, width=110),
        Column("Growing", sum_by("group", select("machine_group_growing_processes")), COUNT, width=110),
        Column("Memory", sum_by("group", _PRIVATE), BYTES, width=130),
        Column(
            "Shared", sum_by("group", select("machine_group_memory_bytes", kind="shared")), BYTES, width=130
        ),
        Column("Per minute", sum_by("group", _GROWTH), BYTES, width=130),
    ],
    "Equal processes: actors of a class, workers of a program, ranks. Growing: how many grow like the one "
    "that grows most. Memory: private memory of all. Shared: the most that one of them maps. Per minute: "
    "growth in the last quarter of an hour; the fastest first.",
    empty=HOW_TO_WATCH,
    sort_by="Per minute",
    height=10,
)

KILLS = lines(
    "Processes killed by the kernel",
    Query(f"{sum_by('group', increment_from_zero(_KILLS))} > 0", "{{group}}"),
    COUNT,
    "Processes that the kernel killed for lack of memory, by group. Good: empty.",
    style="bars",
)

DASHBOARD = Dashboard(
    uid="heapwatch-machine",
    description="Which processes of this machine grow, what grows in them, and how much memory is left?",
    rows=[
        Row("", [GLANCE, GROWS, MEMORY]),
        Row("Groups", [[GROUPS]]),
        Row("Verdict, kills and alerts", [[VERDICT_OVER_TIME], [KILLS, firing_alerts(height=8)]]),
    ],
)
