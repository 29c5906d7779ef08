"""Replay buffers and objects: what they hold, what they will hold when full, what grows that should not."""

from .. import colors
from ..dashboard import Dashboard, Row, two_a_line
from ..panel import BYTES, COUNT, SECONDS, SHARE, Query
from ..panels import alarm, lines, number
from ..promql import PROCESS, growth_per_cycle, in_life, or_zero, select, sum_by, total
from ..queries import trainers
from ..tables import Column, table
from .shared import ADDRESS, BELOW_WARNING, USED, growth_limit, growth_over_time, share

# Buffers.
_BUFFER = f"{PROCESS}, buffer"
_ITEMS = select("trainer_buffer_items")
BUFFER_ITEMS = sum_by(_BUFFER, _ITEMS)
BUFFER_CAPACITY_ITEMS = sum_by(_BUFFER, select("trainer_buffer_capacity_items"))
BUFFER_BYTES = sum_by(_BUFFER, select("trainer_buffer_bytes"))
BUFFER_CAPACITY_BYTES = sum_by(_BUFFER, select("trainer_buffer_capacity_bytes"))
BUFFER_TIME_TO_FULL = (
    f"({BUFFER_CAPACITY_ITEMS} - {BUFFER_ITEMS} > 0)"
    f" / ({sum_by(_BUFFER, in_life('deriv', _ITEMS, '30m'))} > 0)"
)
UNBOUNDED_BUFFERS = f"{BUFFER_ITEMS} unless {BUFFER_CAPACITY_ITEMS}"
_TO_FILL = sum_by(PROCESS, f"clamp_min({BUFFER_CAPACITY_BYTES} - {BUFFER_BYTES}, 0)")
USED_WHEN_FULL = f"({trainers.RESIDENT} + {_TO_FILL}) / {trainers.MEMORY_LIMIT}"
ATTACHED_TENSORS = sum_by(_BUFFER, select("trainer_buffer_attached_tensors"))

# Objects.
_OBJECT = f"{PROCESS}, object"
OBJECT_SIZES = sum_by(_OBJECT, select("trainer_object_size_bytes"))

FILL = colors.judged(colors.SKY, (0.999, colors.GOOD), (1.1, colors.CRITICAL))

GLANCE = [
    number(
        "Held by buffers",
        total(BUFFER_BYTES),
        BYTES,
        "Bytes that all buffers hold now: for a preallocated one, its share that is in use.",
    ),
    number("When all are full", total(BUFFER_CAPACITY_BYTES), BYTES, "What the bounded buffers will hold."),
    number(
        "Memory used when full",
        f"max({USED_WHEN_FULL})",
        SHARE,
        f"Memory over its limit once every buffer is full. Good: {BELOW_WARNING}. Bad: above 100 %: the "
        "process will be killed because of a buffer that is too large, not of a leak.",
        thresholds=USED,
    ),
    alarm(
        "Unbounded buffers",
        or_zero(f"count({UNBOUNDED_BUFFERS})", f"count({BUFFER_ITEMS})"),
        colors.WARNING,
        "Buffers without a declared bound. Good: 0. Bad: any; a buffer without a bound can fill the memory.",
    ),
    alarm(
        "Tensors that hold more",
        total(ATTACHED_TENSORS),
        colors.CRITICAL,
        "Stored tensors that keep an autograd graph alive or live on the GPU (estimated). Good: 0.",
    ),
    number("Held by named objects", total(OBJECT_SIZES), BYTES, "Deep size of them. Good: constant."),
]

NOW = table(
    "Buffers now",
    [
        Column("Buffer", label="buffer"),
        *ADDRESS,
        Column("Items", BUFFER_ITEMS, COUNT),
        Column("Capacity", BUFFER_CAPACITY_ITEMS, COUNT, options={"noValue": "unbounded"}),
        share("Fill", f"{BUFFER_ITEMS} / {BUFFER_CAPACITY_ITEMS}", FILL),
        Column("Per item", f"{BUFFER_BYTES} / ({BUFFER_ITEMS} > 0)", BYTES),
        Column("Held", BUFFER_BYTES, BYTES),
        Column("When full", BUFFER_CAPACITY_BYTES, BYTES),
        Column("Full in", BUFFER_TIME_TO_FULL, SECONDS),
    ],
    "Each buffer: how full, how large an item really is, what it will hold when full, and when that will be. "
    "Bad: no capacity, or a size when full that the machine does not have.",
    sort_by="Held",
    height=7,
)

OVER_TIME = [
    lines(
        "Bytes held by buffers",
        Query(BUFFER_BYTES, "{{buffer}} {{trainer_name}}"),
        BYTES,
        "Stacked. Good: rises, then flat at capacity. Bad: rises beyond, or has no capacity.",
        style="areas",
        height=9,
        marked=True,
    ),
    lines(
        "Memory of its limit, now and when buffers are full",
        [
            Query(USED_WHEN_FULL, "when full {{trainer_name}}"),
            Query(trainers.USED_SHARE, "now {{trainer_name}}"),
        ],
        SHARE,
        "Share of the memory limit that is used now, and when the bounded buffers are full. "
        "Good: both lines end well below 100 %.",
        marked=True,
    ),
]

MORE = two_a_line(
    lines(
        "Items in buffers",
        Query(BUFFER_ITEMS, "{{buffer}} {{trainer_name}}"),
        COUNT,
        "Good: rises to capacity and stays.",
    ),
    lines(
        "Tensors that hold graphs",
        Query(ATTACHED_TENSORS, "{{buffer}} {{trainer_name}}"),
        COUNT,
        "Stored tensors that still hold an autograd graph, or live on the GPU (estimated from a sample). "
        "Good: zero. Bad: any other value. Detach and move to the CPU before storing.",
    ),
)

OBJECTS = two_a_line(
    lines(
        "Live objects by type",
        Query(sum_by(f"{PROCESS}, type", select("trainer_objects")), "{{type}} {{trainer_name}}"),
        COUNT,
        "Instances of the watched classes. Good: constant from cycle to cycle. Bad: a few more with each.",
    ),
    growth_over_time("Object growth per minute", "objects"),
    lines(
        "Sizes of named objects",
        Query(OBJECT_SIZES, "{{object}} {{trainer_name}}"),
        BYTES,
        "Deep size, each storage counted once. Good: constant after the first cycles.",
    ),
    lines(
        "Growth of named objects per cycle",
        [
            Query(growth_per_cycle("object_size"), "{{component}} {{trainer_name}}"),
            growth_limit("object_size", "epoch"),
        ],
        BYTES,
        "Growth per epoch or generation. Good: around zero. Bad: above the dashed limit.",
    ),
)

DASHBOARD = Dashboard(
    uid="heapwatch-buffers",
    description="Which buffer or named object takes the memory, and will the buffers fit when they are full?",
    rows=[Row("", [GLANCE, [NOW], OVER_TIME]), Row("Buffers", MORE), Row("Objects", OBJECTS)],
)
