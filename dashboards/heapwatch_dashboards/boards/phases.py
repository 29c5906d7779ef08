"""Memory by generation and phase: which phase of the cycle gains memory that it does not return."""

from ..dashboard import Dashboard, Row
from ..panel import BYTES, COUNT, SECONDS, Query
from ..panels import limit, lines, number
from ..promql import PROCESS, growth_per_cycle, in_life, limits, max_by, min_by, select
from ..tables import Column, table
from .shared import ADDRESS, growth_limit

# Cycles: the slowest unit that a trainer counts. Episodes are the cycles of one that counts nothing larger.
_CYCLES = select("trainer_progress_total", 'unit=~"episode|epoch|generation"')
CYCLES_IN_RANGE = min_by(PROCESS, in_life("increase", _CYCLES, "$__range"))
_PER_CYCLE = f"on (job, instance) group_left () ({CYCLES_IN_RANGE} > 0)"

# Phases.
_PHASE = f"{PROCESS}, phase"
_PHASE_END = select("trainer_phase_end_resident_memory_bytes")
PHASE_END = max_by(_PHASE, _PHASE_END)
PHASE_GROWTH_IN_RANGE = max_by(_PHASE, in_life("delta", _PHASE_END, "$__range"))
# Its own gain: memory at the end of an innocent phase lies as much higher as at the end of a guilty one.
_GAINED = max_by("phase", in_life("avg_over_time", select("trainer_phase_memory_delta_bytes"), "$__range"))
# As recorded for a limit; else of the phase that gained most at its end in half an hour.
_RECENT_CYCLES = f"{min_by(PROCESS, in_life('increase', _CYCLES, '30m'))} > 1"
_BY_PHASE = f"{max_by(PROCESS, in_life('delta', _PHASE_END, '30m'))} / ({_RECENT_CYCLES})"
_RECORDED = growth_per_cycle("memory")
MEMORY_GROWTH_PER_CYCLE = (
    f'{_RECORDED} or label_replace({_BY_PHASE} unless on (job, instance) {_RECORDED}, "per", "cycle", "", "")'
)
_SINCE_START = select("job:trainer_resource:total", resource="memory", component="since start")
MEMORY_SINCE_START = max_by(PROCESS, _SINCE_START)
_PHASE_SECONDS = select("trainer_phase_duration_seconds_sum")
_PHASE_COUNT = select("trainer_phase_duration_seconds_count")
_RUNS = max_by(_PHASE, in_life("increase", _PHASE_COUNT, "$__range"))
PHASE_DURATION_IN_RANGE = f"{max_by(_PHASE, in_life('increase', _PHASE_SECONDS, '$__range'))} / ({_RUNS} > 0)"
LIMITS_SINCE_START = min_by("severity", limits("memory", "since start"))

GLANCE = [
    number(
        "Cycles in range",
        f"round(sum({CYCLES_IN_RANGE}))",
        COUNT,
        "Episodes, epochs or generations, the slowest that is counted, of this process in the time range. "
        "Good: enough to see a trend, five or more.",
    ),
    number(
        "Growth per cycle",
        f"max({MEMORY_GROWTH_PER_CYCLE})",
        BYTES,
        "Memory gained from one cycle to the next, at the same point of each. Good: falls to zero as "
        "buffers fill.",
    ),
    number(
        "Phase that gains most",
        f"topk(1, {_GAINED} > 0)",
        BYTES,
        "The phase across which memory rises most, on average of the time range, and its gain in one run. "
        "Phases after it also end higher, but do not cause the growth.",
        legend="{{phase}}",
    ),
    number(
        "Time of a cycle",
        f"max(1 / {min_by(PROCESS, in_life('deriv', _CYCLES, '1h'))} > 0)",
        SECONDS,
        "How long a cycle takes, over the last hour. Bad: rising while memory grows.",
    ),
]

TREND = [
    lines(
        "Memory at phase end",
        Query(PHASE_END, "{{phase}} {{trainer_name}}"),
        BYTES,
        "Memory at the same point of every cycle. Good: rises in the first cycles, then flat. "
        "Bad: the same step up in every cycle.",
        style="steps",
        marked=True,
    ),
    table(
        "Phases",
        [
            Column("Phase", label="phase"),
            *ADDRESS,
            Column("At its end", PHASE_END, BYTES, width=90),
            Column("In range", PHASE_GROWTH_IN_RANGE, BYTES, width=90),
            Column("Per cycle", f"{PHASE_GROWTH_IN_RANGE} / {_PER_CYCLE}", BYTES, width=90),
            Column("Takes", PHASE_DURATION_IN_RANGE, SECONDS, width=80),
        ],
        "Memory when each phase last ended, what that gained over the time range and per cycle, and how "
        "long it takes. Good: gains near zero.",
        sort_by="Per cycle",
    ),
]

GAINS = [
    lines(
        "Gain per phase",
        Query(max_by(_PHASE, select("trainer_phase_memory_delta_bytes")), "{{phase}} {{trainer_name}}"),
        BYTES,
        "Change of memory across each phase's last run. Good: what one phase takes, another returns.",
        style="steps",
        floor=None,
    ),
    lines(
        "Memory growth per cycle",
        [
            Query(MEMORY_GROWTH_PER_CYCLE, "per {{per}} {{trainer_name}}"),
            growth_limit("memory", "episode|epoch|generation"),
        ],
        BYTES,
        "Growth from cycle to cycle. Good: falls to zero within the first cycles. Bad: constant: each cycle "
        "leaks.",
    ),
    lines(
        "Memory since the start",
        [
            Query(MEMORY_SINCE_START, "{{trainer_name}}"),
            limit(LIMITS_SINCE_START, MEMORY_SINCE_START, "{{severity}} limit"),
        ],
        BYTES,
        "How far memory is above its level when training began. Good: levels off. Bad: beyond the dashed "
        "limits of the whole run.",
        floor=None,
    ),
]

DASHBOARD = Dashboard(
    uid="heapwatch-phases",
    description="Which phase of an episode, epoch or generation gains memory that it does not return?",
    rows=[Row("", [GLANCE, TREND]), Row("Gains", [GAINS])],
    start="now-3h",
)
