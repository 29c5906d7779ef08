"""One trainer: what grows in it, what its memory consists of, and what was done about it."""

from .. import colors
from ..dashboard import Dashboard, Row
from ..empty import NO_LIMIT, NOTHING_GROWS
from ..limits import limit
from ..panel import AGO, BYTES, COUNT, NUMBER, PER_SECOND, SECONDS, SHARE, Query, fixed, override
from ..panels import gauge, lines, number, states
from ..queries import alerts, trainers
from ..tables import BACKGROUND, Column, table
from .shared import (
    FORECAST_WORDS,
    JOB,
    TIME_LEFT,
    USED,
    firing_alerts,
    freed_memory,
    growth_limit,
    memory_limit,
)

WHAT_GROWS = table(
    "What grows",
    [
        Column(
            "Verdict",
            trainers.GROWING_VERDICT,
            width=110,
            cell=BACKGROUND,
            options={"mappings": colors.value_mappings(colors.VERDICTS)},
        ),
        Column("What", label="component"),
        Column("Resource", label="resource", width=110),
        Column("Since", trainers.GROWING_SINCE, AGO, width=120),
        Column("Bytes per minute", trainers.GROWING_BYTES_PER_MINUTE, BYTES, width=130),
        Column("Bytes now", trainers.GROWING_BYTES, BYTES, width=100),
        Column("Items per minute", trainers.GROWING_ITEMS_PER_MINUTE, COUNT, width=130),
        Column("Items now", trainers.GROWING_ITEMS, COUNT, width=100),
        Column("instance", label="instance", width=150),
        JOB,
    ],
    "What grows beyond a limit or without end, named, since when and how fast; leaks first. Good: nothing "
    "grows.",
    empty=NOTHING_GROWS,
    sort_by="Verdict",
    height=5,
)

LEAK = {0: ("growing", colors.NOTICE), 1: ("leak", colors.CRITICAL)}
PATHS = table(
    "What holds it",
    [
        Column(
            "Path is",
            trainers.PATH_IS_LEAK,
            width=90,
            cell=BACKGROUND,
            options={"mappings": colors.value_mappings(LEAK)},
        ),
        Column("Path", label="path"),
        Column("Type", label="type"),
        Column("Grows at", label="site", width=150),
        Column("Bytes per minute", trainers.PATH_BYTES_PER_MINUTE, BYTES, width=130),
        Column("Bytes", trainers.PATH_BYTES, BYTES, width=90),
        Column("Share", trainers.PATH_SHARE, SHARE, width=70),
        Column("Remedy", label="remedy"),
        Column("instance", label="instance", width=150),
        JOB,
    ],
    "Paths from a root of the program to what grows, as the trainer itself found them: of what type, where "
    "in the "
    "code, and their share of the process's growth. Good: empty, or a filling buffer.",
    sort_by="Bytes per minute",
    height=5,
)

GLANCE = [
    number(
        "Verdict",
        trainers.WORST_VERDICT,
        NUMBER,
        "The worst verdict among the chosen trainers. Good: healthy. Bad: leak, over a limit, down or "
        "stalled.",
        words=colors.VERDICTS,
        thresholds=colors.thresholds(colors.UNKNOWN),
        filled=True,
    ),
    number(
        "Memory",
        trainers.RESIDENT_SUM,
        BYTES,
        "Resident memory of the trainer and its workers. Good: flat after warm-up.",
    ),
    number(
        "Used of the limit",
        trainers.MOST_USED,
        SHARE,
        "Memory over the container's limit, else over physical memory. Good: below 80 %.",
        thresholds=USED,
    ),
    number(
        "Growth per minute",
        trainers.MOST_GROWTH,
        BYTES,
        "Slope of memory over ten minutes. Good: near zero. Bad: above the growth limit (20 MB by default) "
        "for long.",
    ),
    number(
        "Time to limit",
        trainers.SHORTEST_TIME_TO_LIMIT,
        SECONDS,
        "How long until the memory limit at the present growth.",
        words=FORECAST_WORDS,
        thresholds=TIME_LEFT,
        empty=NO_LIMIT,
    ),
    number(
        "Freed by cleanups",
        alerts.FREED_IN_RANGE,
        BYTES,
        "Memory that cleanups of this time range gave back. Bad: cleanups ran and this stays near zero.",
    ),
]

EXPLAINED = lines(
    "Memory explained",
    [
        Query(trainers.EXPLAINED, "{{component}}"),
        Query(trainers.WORKERS_SUM, "workers"),
        Query(trainers.UNEXPLAINED, "unexplained"),
        *limit(
            trainers.MEMORY_LIMITS_SUM,
            trainers.MEMORY_OF_ALL,
            "{{severity}} limit",
            across="sum",
        ),
    ],
    BYTES,
    "Resident memory, stacked by what holds it: buffers, named objects, workers, and the rest, which nothing "
    "watched explains. Good: bands flat, unexplained thin and flat. Bad: one band widens without end: that "
    "is "
    "the suspect. Dashed: limits of memory.",
    stacked=True,
    overrides=[
        override("unexplained", color=fixed(colors.UNKNOWN)),
        override("workers", color=fixed(colors.SKY)),
    ],
    height=7,
    marked=True,
)
PATHS_OVER_TIME = lines(
    "What holds it over time",
    Query(trainers.PATHS_OVER_TIME, "{{path}}"),
    BYTES,
    "Bytes of each growing path, stacked. Good: flat. Bad: a band that widens without end: that is the leak.",
    stacked=True,
    height=7,
    marked=True,
)
SUSPECTS = gauge(
    "Suspects",
    Query(trainers.SUSPECTS, "{{component}}", instant=True),
    SHARE,
    "How much of the memory growth each component explains. Good: empty. Bad: one bar near 100 %.",
    thresholds=colors.thresholds(colors.SKY, (0.3, colors.WARNING), (0.6, colors.CRITICAL)),
    top=1,
)

OVER_TIME = [
    [
        lines(
            "Memory growth per minute",
            [Query(trainers.MEMORY_GROWTH, "{{instance}}"), *growth_limit("memory")],
            BYTES,
            "Slope over ten minutes. Good: near zero, or above only while buffers fill. "
            "Bad: above the dashed limit for long.",
            marked=True,
        ),
        states(
            "Verdict over time",
            Query(trainers.VERDICT, "{{instance}}"),
            colors.VERDICTS,
            "The verdict on the trainer, and since when. Good: healthy after a short warm-up.",
        ),
    ],
    [
        lines(
            "Time until the memory limit",
            Query(trainers.TIME_TO_LIMIT_SOON, "{{instance}}"),
            SECONDS,
            "How long until the memory limit, at the growth of that moment. Good: no line. Bad: falling to "
            "zero.",
        ),
        SUSPECTS,
    ],
    [freed_memory(), firing_alerts(width=16)],
]

PROCESS = [
    [
        lines(
            "Resident memory by role",
            [
                Query(trainers.RESIDENT_BY_ROLE, "{{role}} {{instance}}"),
                Query(trainers.UNIQUE_BY_ROLE, "{{role}} unique {{instance}}"),
                Query(trainers.MEMORY_LEFT, "left for {{instance}}"),
                *memory_limit(),
            ],
            BYTES,
            "The trainer itself and the sum of its worker processes, against the container's or the host's "
            "limit; and what is left: under that limit, and of the host beside other programs.",
        ),
        lines(
            "Allocator",
            [
                Query(trainers.ALLOCATOR_USED, "in use {{instance}}"),
                Query(trainers.ALLOCATOR_RETAINED, "kept {{instance}}"),
            ],
            BYTES,
            "What malloc has handed out, and what was freed but is kept for reuse. Memory that rises with "
            "what "
            "is kept is fragmentation; with what is in use, something holds it.",
        ),
    ],
    [
        lines(
            "Python blocks",
            Query(trainers.PYTHON_BLOCKS, "{{instance}}"),
            COUNT,
            "Small objects that Python has handed out. Good: flat. Bad: rising: plain Python objects are "
            "kept.",
        ),
        lines(
            "CPU cores by role",
            Query(trainers.CPU, "{{role}} {{instance}}"),
            NUMBER,
            "Cores in use. Good: steady. Bad: zero while training should run.",
        ),
    ],
    [
        lines(
            "Processes by role",
            Query(trainers.PROCESSES, "{{role}} {{instance}}"),
            COUNT,
            "Live processes. Good: constant. Bad: workers that pile up, or die.",
            steps=True,
        ),
        lines(
            "Open files",
            Query(trainers.OPEN_FILES, "{{instance}}"),
            COUNT,
            "Open file descriptors. Good: constant. Bad: rising: files, sockets or pipes are leaked.",
        ),
    ],
]

PROGRESS = [
    lines(
        "Progress",
        Query(trainers.PROGRESS, "{{unit}}s {{instance}}"),
        PER_SECOND,
        "Steps, episodes, epochs and generations per second. Good: steady. Bad: falling while memory grows.",
    ),
    lines(
        "Time since last progress",
        Query(trainers.SINCE_PROGRESS, "{{instance}}"),
        SECONDS,
        "Good: seconds. Bad: rising: the trainer is stalled although it still answers.",
    ),
]

DASHBOARD = Dashboard(
    uid="heapwatch-trainer",
    description="What grows in this trainer, since when, what holds it, and how long until its limit?",
    rows=[
        Row("", [[WHAT_GROWS], GLANCE, [PATHS], [EXPLAINED, PATHS_OVER_TIME]]),
        Row("Over time", OVER_TIME),
        Row("Process, workers and host", PROCESS, collapsed=True),
        Row("Progress", [PROGRESS], collapsed=True),
    ],
)
