"""Replay buffers and objects: what they hold, what they will hold when full, what grows that should not."""

from .. import colors
from ..dashboard import Dashboard, Row
from ..panel import BYTES, COUNT, SECONDS, SHARE, Query
from ..panels import alarm, lines, number
from ..promql import named
from ..queries import contents, trainers
from ..tables import Column, table
from .shared import ADDRESS, BELOW_WARNING, TRAINER, USED, growth_limit, share

FILL = colors.judged(colors.SKY, (0.999, colors.GOOD), (1.1, colors.CRITICAL))

GLANCE = [
    number(
        "Held by buffers",
        contents.BUFFER_BYTES_SUM,
        BYTES,
        "Bytes that all buffers hold now: for a preallocated one, its share that is in use.",
    ),
    number(
        "When all are full",
        contents.BUFFER_CAPACITY_SUM,
        BYTES,
        "Bytes that the bounded buffers will hold when full, at the measured size of an item.",
    ),
    number(
        "Memory used when full",
        contents.MOST_USED_WHEN_FULL,
        SHARE,
        f"Memory over its limit once every buffer is full. Good: {BELOW_WARNING}. Bad: above 100 %: the "
        "process will be killed because of a buffer that is too large, not of a leak.",
        thresholds=USED,
    ),
    alarm(
        "Unbounded buffers",
        contents.UNBOUNDED_BUFFERS_COUNT,
        colors.WARNING,
        "Buffers without a declared bound. Good: 0. Bad: any; a buffer without a bound can fill the memory.",
    ),
    alarm(
        "Tensors that hold more",
        contents.ATTACHED_TENSORS_SUM,
        colors.CRITICAL,
        "Stored tensors that keep an autograd graph alive or live on the GPU (estimated). Good: 0.",
    ),
    number(
        "Held by named objects",
        contents.OBJECT_SIZES_SUM,
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
        Column("Items", named(contents.BUFFER_ITEMS), COUNT),
        Column("Capacity", contents.BUFFER_CAPACITY_ITEMS, COUNT, options={"noValue": "unbounded"}),
        share("Fill", contents.BUFFER_FILL, FILL),
        Column("Per item", contents.BUFFER_ITEM_BYTES, BYTES),
        Column("Held", contents.BUFFER_BYTES, BYTES),
        Column("When full", contents.BUFFER_CAPACITY_BYTES, BYTES),
        Column("Full in", contents.BUFFER_TIME_TO_FULL, SECONDS),
    ],
    "Each buffer: how full, how large an item really is, what it will hold when full, and when that will be. "
    "Bad: no capacity, or a size when full that the machine does not have.",
    sort_by="Held",
    height=7,
)

OVER_TIME = [
    lines(
        "Bytes held by buffers",
        Query(contents.BUFFER_BYTES, "{{buffer}} {{trainer_name}}"),
        BYTES,
        "Stacked. Good: rises, then flat at capacity. Bad: rises beyond, or has no capacity.",
        stacked=True,
        height=9,
        marked=True,
    ),
    lines(
        "Memory of its limit, now and when buffers are full",
        [
            Query(contents.USED_WHEN_FULL, "when full {{trainer_name}}"),
            Query(trainers.USED_SHARE, "now {{trainer_name}}"),
        ],
        SHARE,
        "Share of the memory limit that is used now, and when the bounded buffers are full. "
        "Good: both lines end well below 100 %.",
        marked=True,
    ),
]

MORE = [
    [
        lines(
            "Items in buffers",
            Query(contents.BUFFER_ITEMS, "{{buffer}} {{trainer_name}}"),
            COUNT,
            "Good: rises to capacity and stays.",
        ),
        lines(
            "Tensors that hold graphs",
            Query(contents.ATTACHED_TENSORS, "{{buffer}} {{trainer_name}}"),
            COUNT,
            "Stored tensors that still hold an autograd graph, or live on the GPU (estimated from a sample). "
            "Good: zero. Bad: any other value. Detach and move to the CPU before storing.",
        ),
    ]
]

OBJECTS = [
    [
        lines(
            "Live objects by type",
            Query(contents.OBJECTS, "{{type}} {{trainer_name}}"),
            COUNT,
            "Instances of the watched classes. Good: constant from cycle to cycle. Bad: a few more with "
            "each.",
        ),
        lines(
            "Object growth per minute",
            Query(contents.OBJECTS_GROWTH, "{{component}} {{trainer_name}}"),
            COUNT,
            "Slope over ten minutes. Good: around zero.",
        ),
    ],
    [
        lines(
            "Sizes of named objects",
            Query(contents.OBJECT_SIZES, "{{object}} {{trainer_name}}"),
            BYTES,
            "Deep size, each storage counted once. Good: constant after the first cycles.",
        ),
        lines(
            "Growth of named objects per cycle",
            [
                Query(contents.OBJECT_GROWTH_PER_CYCLE, "{{component}} {{trainer_name}}"),
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
                Column("Size", named(contents.OBJECT_SIZES), BYTES),
                Column("Growth in range", contents.OBJECT_GROWTH_IN_RANGE, BYTES),
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
