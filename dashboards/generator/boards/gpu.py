"""GPU memory: what is allocated, what the allocator keeps, what others hold, and how long it lasts."""

from .. import colors
from ..dashboard import Dashboard, Row
from ..empty import NO_GPU
from ..limits import limit
from ..panel import BYTES, CELSIUS, NUMBER, SECONDS, SHARE, WATTS, Query, fixed, override
from ..panels import gauge, lines, number
from ..promql import select
from ..queries import gpu
from ..tables import GAUGE, Column, table
from .shared import FORECAST_WORDS, INSTANCE, JOB, TIME_LEFT, USED, firing_alerts, growth_limit

GLANCE = [
    number("Devices", gpu.COUNT, NUMBER, "GPUs that the chosen trainers see."),
    number(
        "Fullest device",
        gpu.FULLEST,
        SHARE,
        "Memory in use over the device's memory. Good: below 80 %.",
        thresholds=USED,
    ),
    number(
        "Allocated",
        gpu.ALLOCATED_SUM,
        BYTES,
        "Memory of live tensors. Good: the same at the same point of every step.",
    ),
    number(
        "Kept by the allocator",
        gpu.CACHED_SUM,
        BYTES,
        "Reserved by torch and not in use by a tensor. Large: fragmentation, or a peak that is over.",
    ),
    number(
        "Growth per minute",
        gpu.MOST_GROWTH,
        BYTES,
        "Slope of allocated memory over ten minutes. Good: around zero.",
    ),
    number(
        "Time to full",
        gpu.SHORTEST_TIME_TO_LIMIT,
        SECONDS,
        "How long until a device is full at its present growth.",
        words=FORECAST_WORDS,
        thresholds=TIME_LEFT,
    ),
]

EXPLAINED = [
    lines(
        "Device memory explained",
        [
            Query(gpu.ALLOCATED_SUM, "tensors"),
            Query(gpu.CACHED_SUM, "kept by the allocator"),
            Query(gpu.CONTEXT_SUM, "context"),
            Query(gpu.OTHERS_SUM, "others"),
            *limit(gpu.TOTAL_SUM, select("trainer_gpu_memory_used_bytes"), "capacity limit", across="sum"),
        ],
        BYTES,
        "All devices together, stacked: live tensors, what torch keeps for reuse, context and libraries, "
        "other "
        "processes. Good: tensors flat. Bad: tensors rise with every step. Dashed: the devices' memory.",
        empty=NO_GPU,
        stacked=True,
        overrides=[
            override("tensors", color=fixed(colors.BLUE)),
            override("kept by the allocator", color=fixed(colors.SKY)),
            override("context", color=fixed(colors.UNKNOWN)),
            override("others", color=fixed(colors.DOWN)),
        ],
        width=16,
        height=9,
        marked=True,
    ),
    gauge(
        "Device memory used",
        Query(gpu.USED_SHARE, "GPU {{device}} {{instance}}", instant=True),
        SHARE,
        "Memory in use by everybody over the device's memory. Good: below 80 %.",
        thresholds=USED,
        top=1,
    ),
]

NOW = table(
    "Devices now",
    [
        Column("Name", label="name"),
        Column("Device", label="device", width=80),
        Column("Driver", label="driver", width=110),
        INSTANCE,
        JOB,
        Column("", gpu.INFO),
        Column("Memory", gpu.TOTAL, BYTES, width=100),
        Column(
            "Used",
            gpu.USED_SHARE,
            SHARE,
            width=140,
            cell=GAUGE,
            options={"min": 0, "max": 1, "thresholds": USED},
        ),
        Column("This trainer", gpu.PROCESS, BYTES, width=110),
    ],
    "What each device is, and how much of it this trainer and everybody use.",
    height=5,
)

GROWTH = [
    [
        lines(
            "Allocated and reserved",
            [
                Query(gpu.ALLOCATED, "allocated, GPU {{device}} {{instance}}"),
                Query(gpu.RESERVED, "reserved, GPU {{device}} {{instance}}"),
            ],
            BYTES,
            "Good: both flat. Bad: allocated rises: tensors are kept. Reserved alone rises: fragmentation.",
            marked=True,
        ),
        lines(
            "GPU growth per minute",
            [Query(gpu.GROWTH, "GPU {{component}} {{instance}}"), *growth_limit("gpu_memory")],
            BYTES,
            "Slope of allocated memory over ten minutes. Good: around zero. Bad: above the limit for long.",
        ),
    ],
    [
        lines(
            "Time until a device is full",
            Query(gpu.TIME_TO_LIMIT, "GPU {{device}} {{instance}}"),
            SECONDS,
            "At the growth of that moment. Good: no line. Bad: falling to zero.",
        ),
    ],
    [firing_alerts()],
]

DEVICE = [
    lines(
        "Utilization",
        Query(gpu.UTILIZATION, "GPU {{device}} {{instance}}"),
        SHARE,
        "Share of time in which a kernel ran. Good: steady. Bad: zero while training should run.",
        top=1,
    ),
    lines(
        "Temperature",
        Query(gpu.TEMPERATURE, "GPU {{device}} {{instance}}"),
        CELSIUS,
        "Good: steady, below about 80 °C.",
        floor=None,
    ),
    lines(
        "Power",
        Query(gpu.POWER, "GPU {{device}} {{instance}}"),
        WATTS,
        "Good: steady. Falls to the idle draw when training stalls.",
    ),
]

DASHBOARD = Dashboard(
    uid="heapwatch-gpu",
    description="What fills the GPU memory, does it grow, and when is a device full?",
    rows=[Row("", [GLANCE, EXPLAINED, [NOW]]), Row("Growth", GROWTH), Row("Device", [DEVICE])],
)
