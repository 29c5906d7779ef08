"""One trainer: what grows in it, what its memory consists of, and what was done about it."""

from .. import colors
from ..colors import VERDICTS
from ..dashboard import Dashboard, Row, two_a_line
from ..empty import NO_LIMIT
from ..panel import BYTES, COUNT, NUMBER, PER_SECOND, SECONDS, SHARE, Query, fixed, override
from ..panels import limit, lines, number, states
from ..promql import PROCESS, limits, max_by, min_by, rate, select, sum_by, total
from ..queries import alerts, explanation, trainers
from ..tables import Column, table
from .shared import (
    BELOW_WARNING,
    FORECAST_WORDS,
    TIME_LEFT,
    USED,
    firing_alerts,
    freed_memory,
    growth_limit,
    what_grows,
)

# The clock of another machine may be ahead.
SINCE_PROGRESS = (
    f"clamp_min(time() - {max_by(PROCESS, select('trainer_last_progress_timestamp_seconds'))}, 0)"
)
MEMORY_OF_ALL = select("job:trainer_resource:total", resource="memory", component="all")
# The recorded level bridges a missed scrape, which would be a hole in the stack.
WORKERS_SUM = total(select("job:trainer_resource:level", resource="memory", component="worker"))
# The lowest of a severity: of the process with its workers; or of the trainer alone, above its workers, so
# that the stack crosses it when the trainer does.
_OF_TRAINER = f"({limits('memory', 'trainer')})"
MEMORY_LIMITS = min_by(
    "severity",
    f"{limits('memory', 'all')} or {_OF_TRAINER} + on () group_left () {WORKERS_SUM} or {_OF_TRAINER}",
)
RESIDENT_BY_ROLE = sum_by(f"{PROCESS}, role", select("trainer_process_resident_memory_bytes"))
UNIQUE_BY_ROLE = sum_by(f"{PROCESS}, role", select("trainer_process_unique_memory_bytes"))
CPU = sum_by(f"{PROCESS}, role", rate(select("trainer_process_cpu_seconds_total")))

VERDICT = number(
    "Verdict",
    f"max({trainers.VERDICT})",
    NUMBER,
    "The verdict of now. Good: healthy. Bad: leak, over a limit, down or stalled.",
    words=VERDICTS,
    thresholds=colors.thresholds(colors.UNKNOWN),
    filled=True,
    width=4,
    height=8,
)
EXPLANATION = what_grows(
    Column("type", label="type", hidden=True),
    Column("Items/min", explanation.ITEMS_PER_MINUTE, COUNT, width=95),
)
FORECAST = number(
    "Time left",
    trainers.SHORTEST_TIME_TO_LIMIT,
    SECONDS,
    "How long until the memory that ends first is used up, at the present growth.",
    words=FORECAST_WORDS,
    thresholds=TIME_LEFT,
    empty=NO_LIMIT,
)

GLANCE = [
    number(
        "Memory",
        total(trainers.KNOWN_RESIDENT),
        BYTES,
        "Resident memory of the trainer, and of its workers what they do not share. Good: flat after "
        "warm-up.",
    ),
    number(
        "Used of the limit",
        f"max({trainers.KNOWN_USED_SHARE})",
        SHARE,
        f"Memory over the container's limit, else over physical memory. Good: {BELOW_WARNING}.",
        thresholds=USED,
    ),
    number(
        "Growth per minute",
        f"max({trainers.KNOWN_GROWTH})",
        BYTES,
        "Slope of memory over ten minutes; of what grows or leaks as its judge says. Good: near zero. Bad: "
        "above the dashed limit of the chart for long.",
    ),
    FORECAST,
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
        Query(explanation.DECLARED, "{{component}}"),
        Query(explanation.PATHS, "{{path}}"),
        Query(WORKERS_SUM, "workers"),
        Query(total(f"clamp_min({explanation.TRAINER_ALONE} - {explanation.HELD}, 0)"), "unexplained"),
        limit(MEMORY_LIMITS, MEMORY_OF_ALL, "{{severity}} limit"),
    ],
    BYTES,
    "Resident memory, stacked by what holds it: declared buffers and objects, the paths that grow, "
    "workers, and the rest. The bands add up to the memory: what holds more, as on a GPU, is drawn as far as "
    "it fits. Good: bands flat. Bad: one band continues to widen, which is the leak. Dashed lines are the "
    "limits that are near.",
    style="areas",
    overrides=[
        override("unexplained", color=fixed(colors.UNKNOWN)),
        override("workers", color=fixed(colors.SKY)),
    ],
    width=14,
    height=8,
    marked=True,
)
GROWTH = lines(
    "Memory growth per minute",
    [Query(trainers.MEMORY_GROWTH, "{{trainer_name}}"), growth_limit("memory")],
    BYTES,
    "Slope over ten minutes. Good: near zero, or above only while buffers fill. "
    "Bad: above the dashed limit for long.",
    marked=True,
)

VERDICT_OVER_TIME = states(
    "Verdict over time",
    Query(trainers.VERDICT, "{{trainer_name}}"),
    VERDICTS,
    "The verdict, and since when. Good: healthy after a short warm-up.",
    height=4,
)
# Empty for a healthy trainer.
TROUBLE = two_a_line(
    lines(
        "Time until the memory limit",
        Query(trainers.TIME_TO_LIMIT_SOON, "{{trainer_name}}"),
        SECONDS,
        "How long until memory is used up, at the growth of then. Good: no line. Bad: falling to zero.",
    ),
    freed_memory(),
    firing_alerts(),
)

PROCESS_ROWS = two_a_line(
    lines(
        "Resident memory by role",
        [
            Query(RESIDENT_BY_ROLE, "{{role}} {{trainer_name}}"),
            Query(UNIQUE_BY_ROLE, "{{role}} unique {{trainer_name}}"),
            limit(
                max_by(PROCESS, select("job:trainer_memory:available_bytes")), MEMORY_OF_ALL, "memory limit"
            ),
        ],
        BYTES,
        "The trainer itself and the sum of its worker processes. The limit is what it can use under the "
        "limit of the container, and on the host with its other programs.",
    ),
    lines(
        "Allocator",
        [
            Query(max_by(PROCESS, select("trainer_allocator_used_bytes")), "in use {{trainer_name}}"),
            Query(max_by(PROCESS, select("trainer_allocator_retained_bytes")), "kept {{trainer_name}}"),
        ],
        BYTES,
        "What malloc has allocated, touched or not, and at most how much freed memory it keeps resident. "
        "If memory rises with what is kept, it is fragmentation. If it rises with what is in use, "
        "something holds it.",
    ),
    lines(
        "CPU cores by role",
        Query(CPU, "{{role}} {{trainer_name}}"),
        NUMBER,
        "Cores in use. Good: steady. Bad: zero while training should run.",
    ),
    lines(
        "Processes by role",
        Query(sum_by(f"{PROCESS}, role", select("trainer_processes")), "{{role}} {{trainer_name}}"),
        COUNT,
        "Live processes. Good: constant. Bad: more and more workers, or fewer.",
        style="steps",
    ),
)

PROGRESS = [
    lines(
        "Progress",
        Query(trainers.PROGRESS, "{{unit}}s {{trainer_name}}"),
        PER_SECOND,
        "Steps, episodes, epochs and generations per second. Good: steady. Bad: falling while memory grows.",
    ),
    lines(
        "Time since last progress",
        Query(SINCE_PROGRESS, "{{trainer_name}}"),
        SECONDS,
        "Good: seconds. Bad: rising: the trainer is stalled although it still answers.",
    ),
]


def _limits(resource: str) -> str:
    """The limits in force on levels that there are; `resource` is a matcher."""
    limit, level = select("job:trainer_limit:effective", resource), select("job:trainer_resource:level")
    return min_by("resource, component, severity", f"{limit} and on (job, instance, resource) {level}")


# With the labels of a limit.
_AVAILABLE = (
    "label_replace(label_replace("
    f"min({select('job:trainer_memory:available_bytes')}), "
    '"resource", "memory", "", ""), "component", "can be used", "", "")'
)
_IN_BYTES = "memory|gpu_memory|object_size"
LIMITS = table(
    "Limits",
    [
        Column("Resource", label="resource", width=160),
        Column("Component", label="component"),
        Column("Severity", label="severity", width=160),
        Column("Bytes", f"{_limits(f'resource=~{_IN_BYTES!r}')} or {_AVAILABLE}", BYTES, width=140),
        Column("Items", _limits(f"resource!~{_IN_BYTES!r}"), COUNT, width=140),
    ],
    "The alert thresholds, and the memory that the trainer can use. An alert fires while a level is over its "
    "limit. A trainer can set its own.",
    empty=NO_LIMIT,
)

DASHBOARD = Dashboard(
    uid="heapwatch-trainer",
    description="What grows in this trainer, since when, what holds it, and how long until its limit?",
    rows=[
        Row("", [[VERDICT, EXPLANATION], GLANCE, [EXPLAINED, GROWTH]]),
        Row("Over time", [[VERDICT_OVER_TIME]]),
        Row("Forecast, cleanups and alerts", TROUBLE, collapsed=True),
        Row("Process, workers and host", PROCESS_ROWS, collapsed=True),
        Row("Progress", [PROGRESS], collapsed=True),
        Row("Limits", [[LIMITS]], collapsed=True),
    ],
)
