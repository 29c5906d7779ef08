"""Replay buffers and objects: what they hold, what they will hold when full, what grows that should not."""

from .. import colors
from .. import queries as q
from ..dashboard import Dashboard, Row
from ..empty import FEW_CYCLES, NO_BOUNDED_BUFFER, NO_BUFFERS, NO_OBJECTS, NO_SIZES
from ..panel import BYTES, COUNT, SECONDS, SHARE, Query
from ..panels import bar_gauge, stat, time_series
from ..tables import GAUGE, Column, table
from .shared import USED, alarm

FILL = colors.thresholds(colors.SKY, (0.999, colors.GOOD), (1.1, colors.CRITICAL))

GLANCE = Row(
    "",
    [
        stat(
            "Held by buffers",
            Query(q.BUFFER_BYTES_SUM),
            BYTES,
            "Bytes that all buffers hold now: for a preallocated one, its share that is in use.",
            empty=NO_BUFFERS,
            decimals=1,
        ),
        stat(
            "When all are full",
            Query(q.BUFFER_CAPACITY_SUM),
            BYTES,
            "Bytes that the bounded buffers will hold when full, at the measured size of an item.",
            empty=NO_BOUNDED_BUFFER,
            decimals=1,
            trend=False,
        ),
        stat(
            "Memory used when full",
            Query(q.FULL_SHARE),
            SHARE,
            "Memory over the limit that kills, once every buffer is full. Good: below 80 %. Bad: above 100 "
            "%: "
            "training will die of a buffer that is too large, not of a leak.",
            empty=NO_BOUNDED_BUFFER,
            thresholds=USED,
            decimals=0,
            trend=False,
        ),
        stat(
            "Unbounded buffers",
            Query(q.UNBOUNDED_BUFFERS_COUNT),
            COUNT,
            "Buffers that declare no bound. Good: 0: what has no bound grows until memory ends.",
            empty=NO_BUFFERS,
            thresholds=alarm(colors.WARNING),
            trend=False,
        ),
        stat(
            "Tensors that hold more",
            Query(q.ATTACHED_TENSORS_SUM),
            COUNT,
            "Stored tensors that keep an autograd graph alive or live on the GPU (estimated). Good: 0.",
            empty=NO_BUFFERS,
            thresholds=alarm(colors.CRITICAL),
            trend=False,
        ),
        stat(
            "Held by named objects",
            Query(q.OBJECT_SIZES_SUM),
            BYTES,
            "Deep size of all named objects. Good: constant.",
            empty=NO_SIZES,
            decimals=1,
        ),
    ],
)

BUFFERS = Row(
    "Buffers",
    [
        table(
            "Buffers now",
            [
                Column("Buffer", label="buffer"),
                Column("instance", label="instance"),
                Column("job", label="job", width=80),
                Column("Items", q.BUFFER_ITEMS, unit=COUNT, decimals=1),
                Column(
                    "Capacity",
                    q.BUFFER_CAPACITY_ITEMS,
                    unit=COUNT,
                    decimals=1,
                    options={"noValue": "unbounded"},
                ),
                Column(
                    "Fill",
                    q.BUFFER_FILL,
                    unit=SHARE,
                    decimals=0,
                    width=140,
                    cell=GAUGE,
                    options={"min": 0, "max": 1, "thresholds": FILL},
                ),
                Column("An item", q.BUFFER_ITEM_BYTES, unit=BYTES, decimals=1),
                Column("Held", q.BUFFER_BYTES, unit=BYTES, decimals=1),
                Column("When full", q.BUFFER_CAPACITY_BYTES, unit=BYTES, decimals=1),
                Column("Full in", q.BUFFER_TIME_TO_FULL, unit=SECONDS, decimals=1),
            ],
            "Each buffer: how full, how large an item really is, what it will hold when full, and when "
            "that will be. "
            "Bad: no capacity, or a size when full that the machine does not have.",
            empty=NO_BUFFERS,
            sort_by="Held",
            height=7,
        ),
        time_series(
            "Bytes held by buffers",
            [Query(q.BUFFER_BYTES, "{{instance}} {{buffer}}")],
            BYTES,
            "Stacked. Good: rises, then flat at capacity. Bad: rises beyond, or has no capacity.",
            empty=NO_BUFFERS,
            stacked=True,
            width=8,
        ),
        time_series(
            "Memory when buffers are full",
            [
                Query(q.MEMORY_WHEN_FULL, "{{instance}} when full"),
                Query(q.RESIDENT, "{{instance}} now"),
                Query(q.KILL_LIMIT, "{{instance}} kill limit"),
            ],
            BYTES,
            "Memory now plus what the bounded buffers will still take, against the limit that kills. "
            "Good: the two lines meet below the dashed one.",
            empty=NO_BOUNDED_BUFFER,
            width=8,
        ),
        bar_gauge(
            "Buffer fill",
            Query(q.BUFFER_FILL, "{{instance}} {{buffer}}", instant=True),
            SHARE,
            "Items over capacity. Full is healthy: from then on the buffer no longer explains growth. "
            "Bad: above 110 %, it is no longer bounded.",
            empty=NO_BOUNDED_BUFFER,
            thresholds=FILL,
            top=1,
            decimals=0,
        ),
        time_series(
            "Items in buffers",
            [Query(q.BUFFER_ITEMS, "{{instance}} {{buffer}}")],
            COUNT,
            "Good: rises to capacity and stays.",
            empty=NO_BUFFERS,
        ),
        time_series(
            "Tensors that hold graphs",
            [Query(q.ATTACHED_TENSORS, "{{instance}} {{buffer}}")],
            COUNT,
            "Stored tensors that still hold an autograd graph, or live on the GPU (estimated from a sample). "
            "Good: zero. Bad: anything else: detach and move to the CPU before storing.",
            empty=NO_BUFFERS,
        ),
    ],
)

OBJECTS = Row(
    "Objects",
    [
        time_series(
            "Live objects by type",
            [Query(q.OBJECTS, "{{instance}} {{type}}")],
            COUNT,
            "Instances of the watched classes. Good: constant from cycle to cycle. Bad: a few more with "
            "each.",
            empty=NO_OBJECTS,
            width=8,
        ),
        time_series(
            "Object growth per minute",
            [Query(q.OBJECTS_GROWTH, "{{instance}} {{component}}")],
            COUNT,
            "Robust growth over many samples. Good: around zero.",
            empty=NO_OBJECTS,
            decimals=1,
            width=8,
        ),
        time_series(
            "Sizes of named objects",
            [Query(q.OBJECT_SIZES, "{{instance}} {{object}}")],
            BYTES,
            "Deep size, each storage counted once. Good: constant after the first cycles.",
            empty=NO_SIZES,
            width=8,
        ),
        time_series(
            "Growth of named objects per cycle",
            [
                Query(q.OBJECT_GROWTH_PER_CYCLE, "{{instance}} {{component}}"),
                Query(q.growth_limit("object_size", "epoch"), "growth limit"),
            ],
            BYTES,
            "Growth per epoch or generation. Good: around zero. Bad: above the dashed limit (5 MB an epoch "
            "by default).",
            empty=FEW_CYCLES,
        ),
        table(
            "Named objects",
            [
                Column("Object", label="object"),
                Column("instance", label="instance"),
                Column("job", label="job", width=80),
                Column("Size", q.OBJECT_SIZES, unit=BYTES, decimals=1),
                Column("Growth in range", q.OBJECT_GROWTH_IN_RANGE, unit=BYTES, decimals=1),
            ],
            "Size now, and what was gained over the time range; the fastest first.",
            empty=NO_SIZES,
            sort_by="Growth in range",
            width=12,
        ),
    ],
)

DASHBOARD = Dashboard(
    uid="heapwatch-buffers",
    description=(
        "Replay buffers and named objects: fill, bytes, forecast, live instances, sizes, and growth per "
        "cycle."
    ),
    rows=[GLANCE, BUFFERS, OBJECTS],
)
