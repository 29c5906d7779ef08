"""Every trainer in one table: which one leaks, what, and how long it has."""

from .. import colors, links, tables
from ..dashboard import Dashboard, Row
from ..empty import NO_LIMIT, NO_RANKS
from ..panel import AGO, BYTES, COUNT, NUMBER, PER_SECOND, SECONDS, SHARE, Query
from ..panels import alarm, lines, number, states, text
from ..queries import alerts, ranks, trainers
from ..queries.recorded import current
from ..tables import Column, table
from .shared import FORECAST_WORDS, JOB, TIME_LEFT, TO_TRAINER, USED, cleanups, firing_alerts, growth_limit

GLANCE = [
    number(
        "Trainers",
        trainers.TRAINERS_COUNT,
        NUMBER,
        "Trainers that announce themselves now. Good: as many as you started.",
        width=3,
    ),
    alarm(
        "Leaking",
        trainers.trainers_with_alert("leak"),
        colors.CRITICAL,
        "Trainers with a leak: growth that no warm-up, filling buffer or sawtooth explains. Good: 0.",
    ),
    alarm(
        "Over a limit",
        trainers.trainers_with_alert("threshold|forecast"),
        colors.WARNING,
        "Trainers over a threshold, or about to reach their memory limit, leaking or not. Good: 0.",
    ),
    alarm(
        "Growing",
        trainers.trainers_with_alert("growth"),
        colors.NOTICE,
        "Trainers that grow faster than their growth limit, leaking or not; what filling "
        "buffers explain is left out. Good: 0 after warm-up.",
    ),
    alarm(
        "Down or stalled",
        trainers.trainers_in_state(5),
        colors.DOWN,
        "Trainers that cannot be scraped or make no progress. Good: 0.",
    ),
    number(
        "Shortest time to limit",
        trainers.SHORTEST_TIME_TO_LIMIT,
        SECONDS,
        "How long until the first trainer reaches its memory limit, at its present growth.",
        words=FORECAST_WORDS,
        thresholds=TIME_LEFT,
        empty=NO_LIMIT,
        width=5,
    ),
]

TRAINERS = table(
    "Trainers by verdict",
    [
        Column(
            "Verdict",
            trainers.VERDICT,
            width=130,
            cell=tables.BACKGROUND,
            options={"mappings": colors.value_mappings(colors.VERDICTS)},
        ),
        Column("Trainer", label="trainer"),
        Column(
            "instance",
            label="instance",
            options={"links": [links.from_row("heapwatch-trainer"), links.from_row("heapwatch-alerts")]},
        ),
        JOB,
        Column("", trainers.TRAINERS),
        Column("Memory", trainers.RESIDENT, BYTES, width=90),
        Column(
            "Used",
            trainers.USED_SHARE,
            SHARE,
            width=130,
            cell=tables.GAUGE,
            options={"min": 0, "max": 1, "thresholds": USED},
        ),
        Column(
            "Growth per minute",
            current(trainers.MEMORY_GROWTH),
            BYTES,
            width=140,
            options={"noValue": "too early"},
        ),
        Column(
            "Time to limit",
            trainers.TIME_TO_LIMIT,
            SECONDS,
            width=130,
            cell=tables.COLORED_TEXT,
            options={"mappings": colors.value_mappings(FORECAST_WORDS), "thresholds": TIME_LEFT},
        ),
        Column("Top suspect", label="component"),
        Column("Share", current(trainers.TOP_SUSPECTS), SHARE, width=70),
        Column(
            "Alerts",
            current(alerts.ALERTS_FIRING_BY_TRAINER),
            COUNT,
            width=70,
            options={"noValue": "0"},
        ),
        Column(
            "Last cleanup",
            current(alerts.LAST_CLEANUP),
            AGO,
            width=130,
            options={"noValue": "none in range"},
        ),
        Column("Freed", current(alerts.FREED_IN_RANGE_BY_TRAINER), BYTES, width=90),
    ],
    "One row a trainer, the worst first; click an instance to open it. Good: healthy, growth near zero. "
    "Bad: leak, with the suspect that explains most of the growth. Last cleanup and freed are of the time "
    "range.",
    sort_by="Verdict",
)

MEMORY = lines(
    "Memory used of the limit by trainer",
    Query(trainers.USED_SHARE, "{{instance}}"),
    SHARE,
    "Resident memory of each trainer and its workers over the container's limit, else over physical memory. "
    "Good: rises while buffers fill, then flat. Bad: rises without end.",
    links=TO_TRAINER,
    height=9,
    marked=True,
)
VERDICTS = states(
    "Verdicts",
    Query(trainers.VERDICT, "{{instance}}"),
    colors.VERDICTS,
    "The verdict on each trainer, and since when. Good: healthy after a short warm-up. "
    "Bad: growing, then leak.",
)

OVER_TIME = [
    [
        lines(
            "Memory growth per minute by trainer",
            [Query(trainers.MEMORY_GROWTH, "{{instance}}"), *growth_limit("memory")],
            BYTES,
            "Slope over ten minutes. Good: near zero, or above it only while buffers fill. "
            "Bad: above the dashed limit for long.",
            links=TO_TRAINER,
            marked=True,
        ),
        lines(
            "Memory by trainer",
            Query(trainers.RESIDENT, "{{instance}}"),
            BYTES,
            "Resident memory of each trainer and its workers.",
            links=TO_TRAINER,
            marked=True,
        ),
    ],
    [
        lines(
            "Time to limit by trainer",
            Query(trainers.TIME_TO_LIMIT_SOON, "{{instance}}"),
            SECONDS,
            "How long each growing trainer has until its limit. Good: no line. Bad: a line falling to zero.",
            links=TO_TRAINER,
        ),
        lines(
            "Progress by trainer",
            Query(trainers.PROGRESS, "{{instance}} {{unit}}s"),
            PER_SECOND,
            "Steps, episodes, epochs or generations per second. Good: steady. Bad: falling while memory "
            "grows, "
            "or zero.",
            links=TO_TRAINER,
        ),
    ],
    [
        lines(
            "Memory outside trainers",
            Query(trainers.UNWATCHED, "machine of the stack"),
            BYTES,
            "Memory in use on the stack's machine that no trainer there holds: other programs, and shared "
            "memory that no trainer has mapped. Good: flat. Bad: rising: something unwatched grows.",
        )
    ],
]

RANKS = [
    table(
        "Distributed runs",
        [
            Column(
                "Worst verdict",
                ranks.WORST_VERDICT,
                width=130,
                cell=tables.BACKGROUND,
                options={"mappings": colors.value_mappings(colors.VERDICTS)},
            ),
            Column("Trainer", label="trainer"),
            Column("Run", label="run"),
            JOB,
            Column("Ranks", ranks.RANKS, COUNT, width=60),
            Column("Of", label="world_size", width=50),
            Column("Leaking", ranks.LEAKING, COUNT, width=80),
            Column("Memory", ranks.MEMORY, BYTES, width=90),
            Column("Largest", ranks.LARGEST, BYTES, width=90),
            Column("Smallest", ranks.SMALLEST, BYTES, width=90),
        ],
        "The ranks of each run together; which of them leaks is in the first table. Good: as many ranks as "
        "the run has, none leaking, the largest as large as the smallest.",
        empty=NO_RANKS,
        sort_by="Worst verdict",
        width=14,
    ),
    lines(
        "Memory of ranks",
        [
            Query(ranks.LARGEST, "largest of {{trainer}} {{run}}"),
            Query(ranks.MEDIAN, "median of {{trainer}} {{run}}"),
            Query(ranks.SMALLEST, "smallest of {{trainer}} {{run}}"),
        ],
        BYTES,
        "Good: the lines of a run lie together. Bad: the largest leaves the median: one rank leaks.",
        empty=NO_RANKS,
    ),
]

READING = text(
    "What the verdicts mean",
    """\
- **healthy**: what grows is explained by filling buffers, or nothing grows.
- **warming up**: too early to say.
- **growing**: over a growth limit; not yet long enough, or not yet unexplained enough, to be a leak.
- **over a limit**: a level is over its threshold, or memory will reach its limit within hours.
- **leak**: something keeps rising that no buffer, warm-up or cycle explains; the suspect says what.
- **down or stalled**: the trainer cannot be scraped, or makes no progress.

Growth limits and thresholds are dashed lines, or stand in the legend where they are far away; a trainer can
set its own. Marks over the charts: red for the start of a leak or a critical alert, green for a cleanup, blue
for a start of the process.
""",
    "The words of the verdict column and of the timeline.",
    height=6,
)

DASHBOARD = Dashboard(
    uid="heapwatch-fleet",
    description="Which trainer leaks, what, since when, and how long has it got?",
    rows=[
        Row("", [GLANCE, [TRAINERS], [MEMORY, VERDICTS]]),
        Row("Over time", OVER_TIME),
        Row("Ranks", [RANKS], collapsed=True),
        Row("Alerts and cleanups", [[firing_alerts(width=14, height=8), cleanups()]]),
        Row("How to read this", [[READING]], collapsed=True),
    ],
)
