"""Every trainer in one table: which one leaks, what, and how long it has."""

from .. import colors, links, tables
from .. import queries as q
from ..dashboard import Dashboard, Row
from ..empty import NO_FORECAST, NO_LIMIT, NO_PROGRESS, NO_VERDICT, NOT_SOON, WARMING_UP
from ..panel import BYTES, COUNT, SECONDS, SHARE, Query
from ..panels import bar_gauge, stat, state_timeline, text, time_series
from ..tables import Column, table
from .shared import TIME_LEFT, TO_TRAINER, USED, alarm, cleanups, firing_alerts

GLANCE = Row(
    "",
    [
        stat(
            "Trainers",
            Query(q.TRAINERS_COUNT),
            COUNT,
            "Trainers that Prometheus knows. Good: as many as you started.",
            trend=False,
            width=3,
        ),
        stat(
            "Leaking",
            Query(q.trainers_in_state(4)),
            COUNT,
            "Trainers with a leak that holds after warm-up, filling buffers and sawtooth are explained. "
            "Good: 0.",
            thresholds=alarm(colors.CRITICAL),
            background=True,
            trend=False,
        ),
        stat(
            "Over a limit",
            Query(q.trainers_in_state(3)),
            COUNT,
            "Trainers over a threshold, or forecast to hit their memory limit. Good: 0.",
            thresholds=alarm(colors.WARNING),
            background=True,
            trend=False,
        ),
        stat(
            "Growing",
            Query(q.trainers_in_state(2)),
            COUNT,
            "Trainers that grow faster than their growth limit; not yet called a leak. Good: 0 after "
            "warm-up.",
            thresholds=alarm(colors.NOTICE),
            background=True,
            trend=False,
        ),
        stat(
            "Down or stalled",
            Query(q.trainers_in_state(5)),
            COUNT,
            "Trainers that cannot be scraped or make no progress. Good: 0.",
            thresholds=alarm(colors.DOWN),
            background=True,
            trend=False,
        ),
        stat(
            "Shortest time to limit",
            Query(q.SHORTEST_TIME_TO_LIMIT),
            SECONDS,
            "How long until the first trainer reaches the limit that kills it, at its present growth. "
            "Good: no forecast.",
            empty=NO_FORECAST,
            thresholds=TIME_LEFT,
            trend=False,
            width=5,
        ),
    ],
)

TRAINERS = Row(
    "",
    [
        table(
            "Trainers by verdict",
            [
                Column(
                    "Verdict",
                    q.VERDICT,
                    width=130,
                    cell=tables.BACKGROUND,
                    options={"mappings": colors.value_mappings(colors.VERDICTS)},
                ),
                Column("Trainer", label="trainer"),
                Column(
                    "instance",
                    label="instance",
                    options={
                        "links": [links.from_row("heapwatch-trainer"), links.from_row("heapwatch-alerts")]
                    },
                ),
                Column("job", label="job", width=80),
                Column("Framework", label="framework", width=100),
                Column("", q.TRAINERS),
                Column("Memory", q.RESIDENT, unit=BYTES, decimals=1, width=90),
                Column("Limit", q.KILL_LIMIT, unit=BYTES, decimals=1, width=90),
                Column(
                    "Used",
                    q.USED_SHARE,
                    unit=SHARE,
                    decimals=0,
                    width=130,
                    cell=tables.GAUGE,
                    options={"min": 0, "max": 1, "thresholds": USED},
                ),
                Column("Growth per minute", q.MEMORY_GROWTH, unit=BYTES, decimals=1, width=140),
                Column(
                    "Time to limit",
                    q.TIME_TO_LIMIT,
                    unit=SECONDS,
                    decimals=1,
                    width=110,
                    cell=tables.COLORED_TEXT,
                    options={"noValue": "no forecast", "thresholds": TIME_LEFT},
                ),
                Column("Top suspect", label="component"),
                Column("Share", q.TOP_SUSPECTS, unit=SHARE, decimals=0, width=70),
                Column("Alerts", q.ALERTS_FIRING_BY_TRAINER, unit=COUNT, width=70, options={"noValue": "0"}),
                Column(
                    "Last cleanup",
                    q.LAST_CLEANUP,
                    unit="dateTimeFromNow",
                    width=130,
                    options={"noValue": "none in range"},
                ),
                Column("Freed", q.FREED_IN_RANGE_BY_TRAINER, unit=BYTES, decimals=1, width=90),
            ],
            "One row a trainer, the worst first; click an instance to open it. Good: healthy, growth near "
            "zero, no time to limit. "
            "Bad: leak, with the suspect that explains most of the growth. Freed and last cleanup are of "
            "the time range.",
            sort_by="Verdict",
            height=9,
        ),
    ],
)

OVER_TIME = Row(
    "Over time",
    [
        state_timeline(
            "Verdicts",
            Query(q.VERDICT, "{{instance}}"),
            colors.VERDICTS,
            "What was thought of each trainer, and since when. Good: healthy after a short warm-up. Bad: "
            "growing, then leak.",
            empty=NO_VERDICT,
            height=6,
        ),
        time_series(
            "Memory by trainer",
            [Query(q.RESIDENT, "{{instance}}")],
            BYTES,
            "Resident memory of each trainer and its workers. Good: rises while buffers fill, then flat. "
            "Bad: rises without end.",
            links=TO_TRAINER,
        ),
        time_series(
            "Memory growth per minute by trainer",
            [Query(q.MEMORY_GROWTH, "{{instance}}"), Query(q.growth_limit("memory"), "growth limit")],
            BYTES,
            "Robust growth over many samples. Good: near zero, or above it only while buffers fill. "
            "Bad: above the dashed limit for long.",
            empty=WARMING_UP,
            links=TO_TRAINER,
        ),
        bar_gauge(
            "Memory used of the limit",
            Query(q.USED_SHARES, "{{instance}}", instant=True),
            SHARE,
            "Resident memory over the limit that kills (container limit, else physical memory). Good: "
            "below 80 %.",
            empty=NO_LIMIT,
            thresholds=USED,
            top=1,
            decimals=0,
        ),
        time_series(
            "Time to limit by trainer",
            [Query(q.TIME_TO_LIMIT_SOON, "{{instance}}")],
            SECONDS,
            "How long each growing trainer has until its limit. Good: no line. Bad: a line falling to zero.",
            empty=NOT_SOON,
            links=TO_TRAINER,
            width=8,
        ),
        time_series(
            "Progress by trainer",
            [Query(q.PROGRESS, "{{instance}} {{unit}}s")],
            "cps",
            "Steps, episodes, epochs or generations per second. Good: steady. Bad: falling while memory "
            "grows, or zero.",
            empty=NO_PROGRESS,
            links=TO_TRAINER,
            width=8,
        ),
    ],
)

ACTIONS = Row(
    "Alerts and cleanups",
    [
        firing_alerts(width=14, height=8),
        cleanups(width=10),
    ],
)

READING = Row(
    "How to read this",
    [
        text(
            "What the verdicts mean",
            """\
- **healthy**: what grows is explained by filling buffers, or nothing grows.
- **warming up**: too early to say.
- **growing**: over a growth limit; not yet long enough, or not yet unexplained enough, to be a leak.
- **over a limit**: a level is over its threshold, or memory will reach its limit within hours.
- **leak**: something keeps rising that no buffer, warm-up or cycle explains; the suspect says what.
- **down or stalled**: the trainer cannot be scraped, or makes no progress.

Growth limits and thresholds are dashed lines; a trainer can set its own.
A green mark is a cleanup, a blue one a restart.
""",
            "The words of the verdict column and of the timeline.",
            height=6,
        )
    ],
    collapsed=True,
)

DASHBOARD = Dashboard(
    uid="heapwatch-fleet",
    description="Every trainer at a glance: is one leaking, what, since when, and how long it has.",
    rows=[GLANCE, TRAINERS, OVER_TIME, ACTIONS, READING],
)
