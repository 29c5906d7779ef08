"""GPU memory: what is allocated, what the allocator keeps, what others hold, and how long it lasts."""

from .. import colors
from .. import queries as q
from ..dashboard import Dashboard, Row
from ..empty import NO_GPU, NO_GPU_FORECAST, NO_TORCH_GPU
from ..panel import BYTES, COUNT, SECONDS, SHARE, Query, fixed, override
from ..panels import bar_gauge, stat, time_series
from ..tables import GAUGE, Column, table
from .shared import TIME_LEFT, USED, firing_alerts

GLANCE = Row(
    "",
    [
        stat(
            "Devices",
            Query(f"count({q.GPU_TOTAL})"),
            COUNT,
            "GPUs that the chosen trainers see.",
            empty=NO_GPU,
            trend=False,
        ),
        stat(
            "Fullest device",
            Query(f"max({q.GPU_USED_SHARE})"),
            SHARE,
            "Memory in use over the device's memory. Good: below 80 %.",
            empty=NO_GPU,
            thresholds=USED,
            decimals=0,
        ),
        stat(
            "Allocated",
            Query(q.GPU_ALLOCATED_SUM),
            BYTES,
            "Memory of live tensors. Good: the same at the same point of every step.",
            empty=NO_TORCH_GPU,
            decimals=1,
        ),
        stat(
            "Kept by the allocator",
            Query(q.GPU_CACHED_SUM),
            BYTES,
            "Reserved by torch and not in use by a tensor. Large: fragmentation, or a peak that is over.",
            empty=NO_TORCH_GPU,
            decimals=1,
        ),
        stat(
            "Growth per minute",
            Query(f"max({q.GPU_GROWTH})"),
            BYTES,
            "Robust growth of allocated memory over many samples. Good: around zero.",
            empty=NO_TORCH_GPU,
            decimals=1,
        ),
        stat(
            "Time to full",
            Query(q.GPU_SHORTEST_TIME_TO_LIMIT),
            SECONDS,
            "How long until a device is full at its present growth. Good: no forecast.",
            empty=NO_GPU_FORECAST,
            thresholds=TIME_LEFT,
            trend=False,
            decimals=1,
        ),
    ],
)

MEMORY = Row(
    "Memory",
    [
        time_series(
            "Device memory explained",
            [
                Query(q.GPU_ALLOCATED_SUM, "tensors"),
                Query(q.GPU_CACHED_SUM, "kept by the allocator"),
                Query(q.GPU_CONTEXT_SUM, "context"),
                Query(q.GPU_OTHERS_SUM, "others"),
                Query(q.GPU_TOTAL_SUM, "capacity limit"),
            ],
            BYTES,
            "All devices together, stacked: live tensors, what torch keeps for reuse, context and "
            "libraries, other "
            "processes. "
            "Good: tensors flat. Bad: tensors rise with every step. Dashed: the devices' memory.",
            empty=NO_GPU,
            stacked=True,
            overrides=[
                override("tensors", color=fixed(colors.BLUE)),
                override("kept by the allocator", color=fixed(colors.SKY)),
                override("context", color=fixed(colors.UNKNOWN)),
                override("others", color=fixed(colors.DOWN)),
            ],
            width=16,
            height=10,
        ),
        bar_gauge(
            "Device memory used",
            Query(q.GPU_USED_SHARE, "{{instance}} {{device}}", instant=True),
            SHARE,
            "Memory in use by everybody over the device's memory. Good: below 80 %.",
            empty=NO_GPU,
            thresholds=USED,
            top=1,
            decimals=0,
            height=10,
        ),
        time_series(
            "Allocated and reserved",
            [
                Query(q.GPU_ALLOCATED, "{{instance}} {{device}} allocated"),
                Query(q.GPU_RESERVED, "{{instance}} {{device}} reserved"),
            ],
            BYTES,
            "Good: both flat. Bad: allocated rises: tensors are kept. Reserved alone rises: fragmentation.",
            empty=NO_TORCH_GPU,
            width=8,
        ),
        time_series(
            "GPU growth per minute",
            [
                Query(q.GPU_GROWTH, "{{instance}} {{component}}"),
                Query(q.growth_limit("gpu_memory"), "growth limit"),
            ],
            BYTES,
            "Robust growth of allocated memory. Good: around zero. Bad: above the dashed limit for long.",
            empty=NO_TORCH_GPU,
            width=8,
        ),
        time_series(
            "Time until a device is full",
            [Query(q.GPU_TIME_TO_LIMIT, "{{instance}} {{device}}")],
            SECONDS,
            "At the growth of that moment. Good: no line. Bad: falling to zero.",
            empty=NO_GPU_FORECAST,
            width=8,
        ),
    ],
)

DEVICE = Row(
    "Device",
    [
        time_series(
            "Utilization",
            [Query(q.GPU_UTILIZATION, "{{instance}} {{device}}")],
            SHARE,
            "Share of time in which a kernel ran. Good: steady. Bad: zero while training should run.",
            empty=NO_GPU,
            top=1,
            width=8,
        ),
        time_series(
            "Temperature",
            [Query(q.GPU_TEMPERATURE, "{{instance}} {{device}}")],
            "celsius",
            "Good: steady, below about 80 °C.",
            empty=NO_GPU,
            floor=None,
            width=8,
        ),
        time_series(
            "Power",
            [Query(q.GPU_POWER, "{{instance}} {{device}}")],
            "watt",
            "Good: steady. Falls to the idle draw when training stalls.",
            empty=NO_GPU,
            width=8,
        ),
        table(
            "Devices now",
            [
                Column("Name", label="name"),
                Column("Device", label="device", width=80),
                Column("Driver", label="driver", width=110),
                Column("instance", label="instance"),
                Column("job", label="job", width=80),
                Column("", q.GPU_INFO),
                Column("Memory", q.GPU_TOTAL, unit=BYTES, decimals=1, width=100),
                Column(
                    "Used",
                    q.GPU_USED_SHARE,
                    unit=SHARE,
                    decimals=0,
                    width=140,
                    cell=GAUGE,
                    options={"min": 0, "max": 1, "thresholds": USED},
                ),
                Column("This trainer", q.GPU_PROCESS, unit=BYTES, decimals=1, width=110),
            ],
            "What each device is, and how much of it this trainer and everybody use.",
            empty=NO_GPU,
            height=6,
        ),
    ],
)

DASHBOARD = Dashboard(
    uid="heapwatch-gpu",
    description=(
        "GPU memory of the trainers: tensors, what the allocator keeps, other processes, growth and forecast."
    ),
    rows=[GLANCE, MEMORY, DEVICE, Row("Alerts", [firing_alerts()], collapsed=True)],
)
