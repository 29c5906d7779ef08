"""Memory by generation and phase: which phase of the cycle gains memory that it does not give back."""

from .. import links
from .. import queries as q
from ..dashboard import Dashboard, Row
from ..empty import FEW_CYCLES, NO_CYCLES, NO_PHASES
from ..panel import BYTES, COUNT, SECONDS, SHARE, Query
from ..panels import bar_gauge, stat, time_series
from ..tables import Column, series_table, table

GLANCE = Row(
    "",
    [
        stat(
            "Cycles in range",
            Query(f"round(sum({q.CYCLES_IN_RANGE}))", instant=True),
            COUNT,
            "Epochs or generations that ended in the time range. Good: enough to see a trend, five or more.",
            empty=NO_CYCLES,
            width=6,
        ),
        stat(
            "Growth per cycle",
            Query(f"max({q.MEMORY_GROWTH_PER_CYCLE})"),
            BYTES,
            "Memory gained from one cycle to the next, at the same point of each. Good: falls to zero as "
            "buffers fill.",
            empty=FEW_CYCLES,
            decimals=1,
            width=6,
        ),
        stat(
            "Phase that gains most",
            Query(f"topk(1, max by (phase) ({q.PHASE_GROWTH_IN_RANGE}))", "{{phase}}", instant=True),
            BYTES,
            "The phase whose end lies highest above where it was when the time range began.",
            empty=NO_PHASES,
            text="value_and_name",
            decimals=1,
            width=6,
        ),
        stat(
            "Cycles in the last hour",
            Query(q.CYCLES_LAST_HOUR),
            COUNT,
            "Speed of training. Bad: falling while memory grows.",
            empty=NO_CYCLES,
            decimals=1,
            width=6,
        ),
    ],
)

TREND = Row(
    "",
    [
        time_series(
            "Memory at phase end",
            [Query(q.PHASE_END, "{{instance}} {{phase}}")],
            BYTES,
            "Memory at the same point of every cycle. Good: rises in the first cycles, then flat. "
            "Bad: the same step up in every cycle.",
            empty=NO_PHASES,
            steps=True,
            links=[links.from_series("heapwatch-trainer")],
            height=10,
        ),
        table(
            "Phases",
            [
                Column("Phase", label="phase"),
                Column("instance", label="instance"),
                Column("job", label="job", width=70),
                Column("At its end", q.PHASE_END, unit=BYTES, decimals=1, width=90),
                Column("In range", q.PHASE_GROWTH_IN_RANGE, unit=BYTES, decimals=1, width=90),
                Column("A cycle", q.PHASE_GROWTH_PER_CYCLE, unit=BYTES, decimals=1, width=90),
                Column("Takes", q.PHASE_DURATION_IN_RANGE, unit=SECONDS, decimals=1, width=80),
            ],
            "Memory when each phase last ended, what that gained over the time range and per cycle, and "
            "how long it takes. "
            "Good: gains near zero.",
            empty=NO_PHASES,
            sort_by="A cycle",
            width=12,
            height=10,
        ),
        time_series(
            "Gain per phase",
            [Query(q.PHASE_GAIN, "{{instance}} {{phase}}")],
            BYTES,
            "Change of memory across each phase's last run. Good: what one phase takes another gives back.",
            empty=NO_PHASES,
            steps=True,
            floor=None,
        ),
        time_series(
            "Memory growth per cycle",
            [
                Query(q.MEMORY_GROWTH_PER_CYCLE, "{{instance}} per {{per}}"),
                Query(q.growth_limit("memory", "generation"), "growth limit"),
            ],
            BYTES,
            "Growth from cycle to cycle. Good: falls to zero within the first cycles. Bad: constant: each "
            "cycle leaks.",
            empty=FEW_CYCLES,
        ),
    ],
)

TABLE = Row(
    "Trend by cycle",
    [
        series_table(
            "Memory at phase end by cycle",
            [
                Query(q.CYCLE_AT_ITS_END, "Cycle", interval="1m"),
                Query(q.PHASE_END_AT_CYCLE_END, "{{phase}}", interval="1m"),
            ],
            BYTES,
            "One row a cycle, the latest first: memory at the end of each phase. Choose one trainer. "
            "Good: rows alike. Bad: every row higher than the one below it.",
            empty=NO_CYCLES,
            counts=["Cycle"],
        ),
    ],
    collapsed=True,
)

TIME = Row(
    "Durations",
    [
        time_series(
            "Phase duration",
            [Query(q.PHASE_DURATION, "{{instance}} {{phase}}")],
            SECONDS,
            "Mean seconds a run of each phase over the last half hour. Good: constant. Bad: slower with "
            "every cycle, as lists grow.",
            empty=NO_PHASES,
            steps=True,
            width=16,
        ),
        bar_gauge(
            "Share of time by phase",
            Query(q.PHASE_TIME_SHARE, "{{instance}} {{phase}}", instant=True),
            SHARE,
            "What each phase takes of the time in all watched phases, over the time range.",
            empty=NO_PHASES,
            top=1,
            decimals=0,
        ),
    ],
)

DASHBOARD = Dashboard(
    uid="heapwatch-phases",
    description=(
        "Memory at the same point of every generation or epoch: the trend, the gain of each phase, the "
        "durations."
    ),
    rows=[GLANCE, TREND, TABLE, TIME],
    start="now-6h",
)
