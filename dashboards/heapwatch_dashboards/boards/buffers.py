"""Replay buffers and objects: what they hold, what they will hold when full, what grows that should not."""

from .. import colors
from ..dashboard import Dashboard, Row
from ..panel import BYTES, COUNT, SECONDS, SHARE, Query
from ..panels import alarm, lines, number
from ..promql import named
from ..queries import buffers, trainers
from ..tables import GAUGE, Column, table
from .shared import ADDRESS, BELOW_WARNING, TRAINER, USED, growth_limit

FILL = colors.judged(colors.SKY, (0.999, colors.GOOD), (1.1, colors.CRITICAL))

GLANCE = [
    number(
        "Held by buffers",
        buffers.BUFFER_BYTES_SUM,
        BYTES,
        "Bytes that all buffers hold now: for a preallocated one, its share that is in use.",
    ),
    number(
        "When all are full",
        buffers.BUFFER_CAPACITY_SUM,
        BYTES,
        "Bytes that the bounded buffers will hold when full, at the measured size of an item.",
    ),
    number(
        "Memory used when full",
        buffers.MOST_USED_WHEN_FULL,
        SHARE,
        f"Memory over its limit once every buffer is full. Good: {BELOW_WARNING}. Bad: above 100 %: the "
        "process will be killed because of a buffer that is too large, not of a leak.",
        thresholds=USED,
    ),
    alarm(
        "Unbounded buffers",
        buffers.UNBOUNDED_BUFFERS_COUNT,
        colors.WARNING,
        "Buffers without a declared bound. Good: 0. Bad: any; a buffer without a bound can fill the memory.",
    ),
    alarm(
        "Tensors that hold more",
        buffers.ATTACHED_TENSORS_SUM,
        colors.CRITICAL,
        "Stored tensors that keep an autograd graph alive or live on the GPU (estimated). Good: 0.",
    ),
    number(
        "Held by named objects",
        buffers.OBJECT_SIZES_SUM,
        BYTES,
        "Deep size of all named objects. Good: constant.",
    ),
]

NOW = table(
    "Buffers now",
    [
        Column("Buffer", label="buffer"),
        TRAINER,
        *ADDRESS,
        Column("Items", named(buffers.BUFFER_ITEMS), COUNT),
        Column("Capacity", buffers.BUFFER_CAPACITY_ITEMS, COUNT, options={"noValue": "unbounded"}),
        Column(
            "Fill",
            buffers.BUFFER_FILL,
            SHARE,
            width=140,
            cell=GAUGE,
            options={"min": 0, "max": 1, "thresholds": FILL},
        ),
        Column("Per item", buffers.BUFFER_ITEM_BYTES, BYTES),
        Column("Held", buffers.BUFFER_BYTES, BYTES),
        Column("When full", buffers.BUFFER_CAPACITY_BYTES, BYTES),
        Column("Full in", buffers.BUFFER_TIME_TO_FULL, SECONDS),
    ],
    "Each buffer: how full, how large an item really is, what it will hold when full, and when that will be. "
    "Bad: no capacity, or a size when full that the machine does not have.",
    sort_by="Held",
    height=7,
)

OVER_TIME = [
    lines(
        "Bytes held by buffers",
        Query(buffers.BUFFER_BYTES, "{{buffer}} {{trainer_name}}"),
        BYTES,
        "Stacked. Good: rises, then flat at capacity. Bad: rises beyond, or has no capacity.",
        stacked=True,
        height=9,
        marked=True,
    ),
    lines(
        "Memory of its limit, now and when buffers are full",
        [
            Query(buffers.USED_WHEN_FULL, "when full {{trainer_name}}"),
            Query(trainers.USED_SHARE, "now {{trainer_name}}"),
        ],
        SHARE,
        "Memory now, and with what the bounded buffers will still take, over the memory limit. "
        "Good: the two lines meet well below 100 %.",
        marked=True,
    ),
]

MORE = [
    [
        lines(
            "Items in buffers",
            Query(buffers.BUFFER_ITEMS, "{{buffer}} {{trainer_name}}"),
            COUNT,
            "Good: rises to capacity and stays.",
        ),
        lines(
            "Tensors that hold graphs",
            Query(buffers.ATTACHED_TENSORS, "{{buffer}} {{trainer_name}}"),
            COUNT,
            "Stored tensors that still hold an autograd graph, or live on the GPU (estimated from a sample). "
            "Good: zero. Bad: anything else: detach and move to the CPU before storing.",
        ),
    ]
]

OBJECTS = [
    [
        lines(
            "Live objects by type",
            Query(buffers.OBJECTS, "{{type}} {{trainer_name}}"),
            COUNT,
            "Instances of the watched classes. Good: constant from cycle to cycle. Bad: a few more with "
            "each.",
        ),
        lines(
            "Object growth per minute",
            Query(buffers.OBJECTS_GROWTH, "{{component}} {{trainer_name}}"),
            COUNT,
            "Slope over ten minutes. Good: around zero.",
        ),
    ],
    [
        lines(
            "Sizes of named objects",
            Query(buffers.OBJECT_SIZES, "{{object}} {{trainer_name}}"),
            BYTES,
            "Deep size, each storage counted once. Good: constant after the first cycles.",
        ),
        lines(
            "Growth of named objects per cycle",
            [
                Query(buffers.OBJECT_GROWTH_PER_CYCLE, "{{component}} {{trainer_name}}"),
                *growth_limit("object_size", "epoch"),
            ],
            BYTES,
            "Growth per epoch or generation. Good: around zero. Bad: above the dashed limit.",
        ),
    ],
    [
        table(
            "Named objects",
            [
                Column("Object", label="object"),
                TRAINER,
                *ADDRESS,
                Column("Size", named(buffers.OBJECT_SIZES), BYTES),
                Column("Growth in range", buffers.OBJECT_GROWTH_IN_RANGE, BYTES),
            ],
            "Size now, and what was gained over the time range; the fastest first.",
            sort_by="Growth in range",
        )
    ],
]

DASHBOARD = Dashboard(
    uid="heapwatch-buffers",
    description="Which buffer or named object takes the memory, and will the buffers fit when they are full?",
    rows=[Row("", [GLANCE, [NOW], OVER_TIME]), Row("Buffers", MORE), Row("Objects", OBJECTS)],
)
