"""One trainer: what its memory consists of, against its limits, and what was done about it."""

from .. import colors
from .. import queries as q
from ..dashboard import Dashboard, Row
from ..empty import (
    NO_CLEANUP,
    NO_FORECAST,
    NO_LIMIT,
    NO_PROGRESS,
    NO_SUSPECT,
    NO_VERDICT,
    NOT_READ,
    NOT_SOON,
    WARMING_UP,
)
from ..panel import BYTES, COUNT, SECONDS, SHARE, Query, fixed, override
from ..panels import bar_gauge, stat, state_timeline, time_series
from .shared import TIME_LEFT, USED, firing_alerts, freed_memory

GLANCE = Row(
    "",
    [
        stat(
            "Verdict",
            Query(f"max({q.VERDICT})"),
            "none",
            "The worst verdict among the chosen trainers. Good: healthy. Bad: leak, over a limit, down or "
            "stalled.",
            mappings=colors.value_mappings(colors.VERDICTS),
            thresholds=colors.thresholds(colors.UNKNOWN),
            background=True,
            trend=False,
        ),
        stat(
            "Memory",
            Query(q.RESIDENT_SUM),
            BYTES,
            "Resident memory of the trainer and its workers. Good: flat after warm-up.",
            decimals=1,
            width=3,
        ),
        stat(
            "Used of the limit",
            Query(f"max({q.USED_SHARE})"),
            SHARE,
            "Memory over the limit that kills: the container's, else physical memory. Good: below 80 %.",
            empty=NO_LIMIT,
            thresholds=USED,
            decimals=0,
            width=3,
        ),
        stat(
            "Growth per minute",
            Query(f"max({q.MEMORY_GROWTH})"),
            BYTES,
            "Robust growth over many samples. Good: near zero. Bad: above the growth limit (20 MB by "
            "default) for long.",
            empty=WARMING_UP,
            decimals=1,
            width=3,
        ),
        stat(
            "Time to limit",
            Query(q.SHORTEST_TIME_TO_LIMIT),
            SECONDS,
            "How long until the memory limit at the present growth. Good: no forecast.",
            empty=NO_FORECAST,
            thresholds=TIME_LEFT,
            trend=False,
            decimals=1,
            width=3,
        ),
        stat(
            "Top suspect",
            Query(q.TOP_SUSPECT, "{{component}}", instant=True),
            SHARE,
            "What explains most of the growth, and its share. Good: no suspect.",
            empty=NO_SUSPECT,
            text="value_and_name",
            decimals=0,
        ),
        stat(
            "Freed by cleanups",
            Query(q.FREED_IN_RANGE),
            BYTES,
            "Memory that cleanups of this time range gave back. Bad: cleanups ran and this stays near zero.",
            empty=NO_CLEANUP,
            trend=False,
            decimals=1,
            width=4,
        ),
    ],
)

MEMORY = Row(
    "",
    [
        time_series(
            "Memory explained",
            [
                Query(q.EXPLAINED, "{{component}}"),
                Query(q.WORKERS_SUM, "workers"),
                Query(q.UNEXPLAINED, "unexplained"),
                Query(q.MEMORY_LIMITS_SUM, "{{severity}} limit"),
                Query(q.IN_ONE_HOUR_SUM, "in one hour"),
            ],
            BYTES,
            "Resident memory, stacked by what holds it: buffers, named objects, and the rest nobody "
            "explains. "
            "Good: bands flat, unexplained thin and flat. Bad: one band widens without end: that is the "
            "suspect. "
            "Dashed: limits, and where memory will be in one hour at this growth.",
            stacked=True,
            overrides=[
                override("unexplained", color=fixed(colors.UNKNOWN)),
                override("workers", color=fixed(colors.SKY)),
            ],
            width=16,
            height=11,
        ),
        bar_gauge(
            "Suspects",
            Query(q.SUSPECTS, "{{component}}", instant=True),
            SHARE,
            "How much of the memory growth each component explains. Good: empty. Bad: one bar near 100 %.",
            empty=NO_SUSPECT,
            thresholds=colors.thresholds(colors.SKY, (0.3, colors.WARNING), (0.6, colors.CRITICAL)),
            top=1,
            decimals=0,
            height=11,
        ),
        state_timeline(
            "Verdict over time",
            Query(q.VERDICT, "{{instance}}"),
            colors.VERDICTS,
            "What was thought of the trainer, and since when. Good: healthy after a short warm-up.",
            empty=NO_VERDICT,
            height=4,
        ),
        time_series(
            "Memory growth per minute",
            [Query(q.MEMORY_GROWTH, "{{instance}}"), Query(q.growth_limit("memory"), "growth limit")],
            BYTES,
            "Robust growth over many samples. Good: near zero, or above only while buffers fill. "
            "Bad: above the dashed limit for long.",
            empty=WARMING_UP,
            width=8,
        ),
        time_series(
            "Time until the memory limit",
            [Query(q.TIME_TO_LIMIT_SOON, "{{instance}}")],
            SECONDS,
            "How long until the limit that kills, at the growth of that moment. Good: no line. Bad: "
            "falling to zero.",
            empty=NOT_SOON,
            width=8,
        ),
        freed_memory(width=8),
    ],
)

PROCESS = Row(
    "Process, workers and host",
    [
        time_series(
            "Resident memory by role",
            [
                Query(q.RESIDENT_BY_ROLE, "{{instance}} {{role}}"),
                Query(q.UNIQUE_BY_ROLE, "{{instance}} {{role}} unique"),
                Query(q.KILL_LIMIT, "{{instance}} kill limit"),
            ],
            BYTES,
            "The trainer itself and the sum of its worker processes, against the container's or the host's "
            "limit.",
            width=8,
        ),
        time_series(
            "Allocator",
            [
                Query(q.ALLOCATOR_USED, "{{instance}} in use"),
                Query(q.ALLOCATOR_RETAINED, "{{instance}} kept"),
            ],
            BYTES,
            "What malloc has handed out, and what was freed but is kept for reuse. "
            "Memory that rises with what is kept is fragmentation; with what is in use, somebody holds it.",
            empty=NOT_READ,
            width=8,
        ),
        time_series(
            "Python blocks",
            [Query(q.PYTHON_BLOCKS, "{{instance}}")],
            COUNT,
            "Small objects that Python has handed out. Good: flat. Bad: rising: plain Python objects are "
            "kept.",
            empty=NOT_READ,
            width=8,
        ),
        time_series(
            "CPU cores by role",
            [Query(q.CPU, "{{instance}} {{role}}")],
            "none",
            "Cores in use. Good: steady. Bad: zero while training should run.",
            decimals=2,
            width=8,
        ),
        time_series(
            "Processes by role",
            [Query(q.PROCESSES, "{{instance}} {{role}}")],
            COUNT,
            "Live processes. Good: constant. Bad: workers that pile up, or die.",
            steps=True,
            width=8,
        ),
        time_series(
            "Open files",
            [Query(q.OPEN_FILES, "{{instance}}")],
            COUNT,
            "Open file descriptors. Good: constant. Bad: rising: files, sockets or pipes are leaked.",
            width=8,
        ),
    ],
    collapsed=True,
)

PROGRESS = Row(
    "Progress",
    [
        time_series(
            "Progress",
            [Query(q.PROGRESS, "{{instance}} {{unit}}s")],
            "cps",
            "Steps, episodes, epochs and generations per second. Good: steady. Bad: falling while memory "
            "grows.",
            empty=NO_PROGRESS,
        ),
        time_series(
            "Time since last progress",
            [Query(q.SINCE_PROGRESS, "{{instance}}")],
            SECONDS,
            "Good: seconds. Bad: rising: the trainer is stalled although it still answers.",
            empty=NO_PROGRESS,
        ),
    ],
    collapsed=True,
)

ALERTS = Row("", [firing_alerts(height=6)])

DASHBOARD = Dashboard(
    uid="heapwatch-trainer",
    description=(
        "One trainer: what its memory consists of, against its limits, its forecast, and what was done "
        "about it."
    ),
    rows=[GLANCE, MEMORY, ALERTS, PROCESS, PROGRESS],
)
