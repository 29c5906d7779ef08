"""Memory by generation and phase: which phase of the cycle gains memory that it does not return."""

from .. import navigation
from ..dashboard import Dashboard, Row
from ..panel import BYTES, COUNT, SECONDS, SHARE, Query
from ..panels import limit, lines, number
from ..promql import named
from ..queries import phases
from ..tables import Column, bars, series_table, table
from .shared import ADDRESS, TRAINER, growth_limit

GLANCE = [
    number(
        "Cycles in range",
        phases.CYCLES_IN_RANGE_SUM,
        COUNT,
        "Episodes, epochs or generations, the slowest that is counted, that ended in the time range. "
        "Good: enough to see a trend, five or more.",
    ),
    number(
        "Growth per cycle",
        phases.MOST_GROWTH_PER_CYCLE,
        BYTES,
        "Memory gained from one cycle to the next, at the same point of each. Good: falls to zero as "
        "buffers fill.",
    ),
    number(
        "Phase that gains most",
        phases.PHASE_THAT_GAINS_MOST,
        BYTES,
        "The phase across which memory rises most, on average of the time range, and its gain in one run. "
        "Phases after it also end higher, but do not cause the growth.",
        legend="{{phase}}",
    ),
    number(
        "Time of a cycle",
        phases.CYCLE_SECONDS,
        SECONDS,
        "How long a cycle takes, over the last hour; of the slowest trainer. Bad: rising while memory grows.",
    ),
]

TREND = [
    lines(
        "Memory at phase end",
        Query(phases.PHASE_END, "{{phase}} {{trainer_name}}"),
        BYTES,
        "Memory at the same point of every cycle. Good: rises in the first cycles, then flat. "
        "Bad: the same step up in every cycle.",
        steps=True,
        links=[navigation.link_from_series("heapwatch-trainer")],
        marked=True,
    ),
    table(
        "Phases",
        [
            Column("Phase", label="phase"),
            TRAINER,
            *ADDRESS,
            Column("At its end", named(phases.PHASE_END), BYTES, width=90),
            Column("In range", phases.PHASE_GROWTH_IN_RANGE, BYTES, width=90),
            Column("Per cycle", phases.PHASE_GROWTH_PER_CYCLE, BYTES, width=90),
            Column("Takes", phases.PHASE_DURATION_IN_RANGE, SECONDS, width=80),
        ],
        "Memory when each phase last ended, what that gained over the time range and per cycle, and how "
        "long it takes. Good: gains near zero.",
        sort_by="Per cycle",
    ),
]

GAINS = [
    lines(
        "Gain per phase",
        Query(phases.PHASE_GAIN, "{{phase}} {{trainer_name}}"),
        BYTES,
        "Change of memory across each phase's last run. Good: what one phase takes, another returns.",
        steps=True,
        floor=None,
    ),
    lines(
        "Memory growth per cycle",
        [
            Query(phases.MEMORY_GROWTH_PER_CYCLE, "per {{per}} {{trainer_name}}"),
            *growth_limit("memory", "episode|epoch|generation"),
        ],
        BYTES,
        "Growth from cycle to cycle. Good: falls to zero within the first cycles. Bad: constant: each cycle "
        "leaks.",
    ),
    lines(
        "Memory since the start",
        [
            Query(phases.MEMORY_SINCE_START, "{{trainer_name}}"),
            *limit(phases.LIMITS_SINCE_START, phases.MEMORY_SINCE_START, "{{severity}} limit"),
        ],
        BYTES,
        "How far memory is above its level when training began. Good: levels off. Bad: beyond the dashed "
        "limits of the whole run.",
        floor=None,
    ),
]

BY_CYCLE = series_table(
    "Memory at phase end by cycle",
    [
        Query(phases.CYCLE_AT_ITS_END, "Cycle", interval="1m"),
        Query(phases.PHASE_END_AT_CYCLE_END, "{{phase}}", interval="1m"),
    ],
    BYTES,
    "One row a cycle, the latest first: memory at the end of each phase. Choose one trainer. "
    "Good: rows alike. Bad: every row higher than the one below it.",
    counts=["Cycle"],
)

TIME = [
    lines(
        "Phase duration",
        Query(phases.PHASE_DURATION, "{{phase}} {{trainer_name}}"),
        SECONDS,
        "Mean seconds a run of each phase over the last half hour. Good: constant. Bad: slower with every "
        "cycle, as lists grow.",
        steps=True,
        width=16,
    ),
    bars(
        "Share of time by phase",
        Query(named(phases.PHASE_TIME_SHARE)),
        ("phase", "trainer_name"),
        SHARE,
        "What each phase takes of the time in all watched phases, over the time range.",
        top=1,
    ),
]

DASHBOARD = Dashboard(
    uid="heapwatch-phases",
    description="Which phase of an episode, epoch or generation gains memory that it does not return?",
    rows=[
        Row("", [GLANCE, TREND, GAINS]),
        Row("Trend by cycle", [[BY_CYCLE]], collapsed=True),
        Row("Durations", [TIME]),
    ],
    start="now-3h",
)
