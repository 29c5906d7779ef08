"""GPU memory: its parts, which of them grow, what is fragmented, and how long it lasts."""

from .. import colors
from ..colors import VERDICTS
from ..dashboard import Dashboard, Row
from ..empty import NO_DEVICE_FILLS, NO_GPU, NO_TORCH_GPU
from ..panel import BYTES, CELSIUS, COUNT, NUMBER, SECONDS, SHARE, WATTS, Query, fixed, override
from ..panels import limit, lines, number
from ..promql import named, select
from ..queries import gpu
from ..tables import BACKGROUND, Column, bars, table
from .shared import (
    ADDRESS,
    BELOW_WARNING,
    FORECAST_WORDS,
    TIME_LEFT,
    TRAINER,
    USED,
    firing_alerts,
    growth_limit,
    share,
)

GLANCE = [
    number("Devices", gpu.COUNT, NUMBER, "GPUs that the chosen trainers see."),
    number(
        "Fullest device",
        gpu.FULLEST,
        SHARE,
        f"Memory in use over the device's memory. Good: {BELOW_WARNING}.",
        thresholds=USED,
    ),
    number(
        "Allocated",
        gpu.ALLOCATED_SUM,
        BYTES,
        "Memory of live tensors. Good: the same at the same point of every step.",
    ),
    number(
        "Fragmented",
        gpu.FRAGMENTED,
        BYTES,
        "Memory that torch reserved and cannot use, because it is between blocks in use. Counted if it is a "
        "fifth of the reserve, and a twentieth of the GPU. Good: no.",
        words={0: ("no", colors.GOOD)},
        thresholds=colors.judged(colors.GOOD, (1, colors.WARNING)),
        empty=NO_TORCH_GPU,
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
        empty=NO_GPU,
    ),
]

EXPLAINED = [
    lines(
        "Device memory explained",
        [
            Query(gpu.ALLOCATED_SUM, "torch: in use"),
            Query(gpu.CACHED_SUM, "torch: reserved, not in use"),
            Query(gpu.part("jax_in_use"), "JAX: in use"),
            Query(gpu.part("jax_cached"), "JAX: reserved, not in use"),
            Query(gpu.part("cupy_in_use"), "CuPy: in use"),
            Query(gpu.part("cupy_cached"), "CuPy: reserved, not in use"),
            Query(gpu.part("context"), "CUDA context"),
            Query(gpu.part("other_pools"), "other pools"),
            Query(gpu.part("workers"), "worker processes"),
            Query(gpu.REST_SUM, "all others"),
            Query(gpu.FREE_SUM, "free, not drawn"),
            *limit(gpu.TOTAL_SUM, select("trainer_gpu_memory_used_bytes"), "capacity limit", across="sum"),
        ],
        BYTES,
        "All devices that the chosen trainers see, each once. The parts add up to the devices' memory: what "
        "torch, JAX and CuPy use and keep, the CUDA context, other pools of these processes, their workers, "
        "and all others: further processes, hidden ones and the driver. Good: flat. Bad: a band that widens "
        "with every step. Dashed: the devices' memory.",
        empty=NO_GPU,
        stacked=True,
        overrides=[
            override("all others", color=fixed(colors.UNKNOWN)),
            override("free, not drawn", custom__hideFrom={"viz": True, "legend": False, "tooltip": False}),
        ],
        width=16,
        height=9,
        marked=True,
    ),
    bars(
        "Device memory used",
        Query(named(gpu.USED_SHARE)),
        ("device", "trainer_name"),
        SHARE,
        f"Memory in use by everybody over the device's memory. Good: {BELOW_WARNING}.",
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
        TRAINER,
        *ADDRESS,
        Column("", named(gpu.INFO)),
        Column("Memory", gpu.TOTAL, BYTES, width=100),
        share("Used", gpu.USED_SHARE, USED),
        Column("This trainer", gpu.PROCESS, BYTES, width=110),
    ],
    "What each device is, and how much of it this trainer and everybody use.",
    height=5,
)

OF_PARTS = colors.value_mappings({**VERDICTS, 3: ("fragmented", colors.WARNING)})
PARTS = [
    table(
        "Parts of GPU memory",
        [
            Column(
                "Verdict", named(gpu.PART_VERDICT), width=100, cell=BACKGROUND, options={"mappings": OF_PARTS}
            ),
            Column("Part", label="part", width=130),
            Column("Device", label="device", width=60),
            Column("Bytes", gpu.PARTS, BYTES, width=90),
            Column("Per minute", gpu.PART_GROWTH, BYTES, width=90),
            TRAINER,
            *ADDRESS,
        ],
        "Every part of each device as each trainer sees it, and the verdict on it: a leak, or torch's "
        "reserve fragmented. The parts of one trainer and device add up to the device's memory. The context "
        "is constant, and what is free is not judged.",
        empty=NO_GPU,
        sort_by="Verdict",
        width=12,
        height=10,
    ),
    lines(
        "Parts other than torch",
        Query(gpu.NOT_OF_TORCH, "{{part}}, GPU {{device}} {{trainer_name}}"),
        BYTES,
        "What JAX, CuPy, other pools of the process, workers and other processes hold. Good: flat. Bad: one "
        "rises: torch does not know of it.",
        height=10,
        marked=True,
    ),
]

GROWTH = [
    [
        lines(
            "Allocated and reserved",
            [
                Query(gpu.ALLOCATED, "allocated, GPU {{device}} {{trainer_name}}"),
                Query(gpu.RESERVED, "reserved, GPU {{device}} {{trainer_name}}"),
            ],
            BYTES,
            "Good: both flat. Bad: if allocated rises, tensors are kept. If only reserved rises, it is "
            "fragmentation.",
            marked=True,
        ),
        lines(
            "GPU growth per minute",
            [Query(gpu.GROWTH, "GPU {{component}} {{trainer_name}}"), *growth_limit("gpu_memory")],
            BYTES,
            "Slope of allocated memory over ten minutes. Good: around zero. Bad: above the limit for long.",
        ),
    ],
    [
        lines(
            "Unusable share of the reserve",
            Query(gpu.UNUSABLE_SHARE, "GPU {{device}} {{trainer_name}}"),
            SHARE,
            "Reserved by torch between blocks in use: it can neither be returned nor used for a larger "
            "block. Good: a few per cent. Bad: above 20 % for ten minutes.",
            empty=NO_TORCH_GPU,
        ),
        lines(
            "Allocation retries",
            Query(gpu.RETRIES, "GPU {{device}} {{trainer_name}}", interval="1m"),
            COUNT,
            "Allocations for which torch gave all its reserve back first. Good: none. Bad: again and again: "
            "the device is full, or fragmented.",
            empty=NO_TORCH_GPU,
            bars=True,
        ),
    ],
    [
        lines(
            "Time until a device is full",
            Query(gpu.TIME_TO_LIMIT, "GPU {{device}} {{trainer_name}}"),
            SECONDS,
            "At the growth of that moment. Good: no line. Bad: falling to zero.",
            empty=NO_DEVICE_FILLS,
        ),
    ],
]

DEVICE = [
    lines(
        "Utilization",
        Query(gpu.UTILIZATION, "GPU {{device}} {{trainer_name}}"),
        SHARE,
        "Share of time in which a kernel ran. Good: steady. Bad: zero while training should run.",
        top=1,
    ),
    lines(
        "Temperature",
        Query(gpu.TEMPERATURE, "GPU {{device}} {{trainer_name}}"),
        CELSIUS,
        "Good: steady, below about 80 °C.",
        floor=None,
    ),
    lines(
        "Power",
        Query(gpu.POWER, "GPU {{device}} {{trainer_name}}"),
        WATTS,
        "Good: steady. Falls to the idle draw when training stalls.",
    ),
]

DASHBOARD = Dashboard(
    uid="heapwatch-gpu",
    description="What fills the GPU memory, which part grows, and when is a device full?",
    rows=[
        Row("", [GLANCE, EXPLAINED, [NOW]]),
        Row("Parts", [PARTS]),
        Row("Growth", GROWTH),
        Row("Device", [DEVICE], collapsed=True),
        Row("Alerts", [[firing_alerts()]]),
    ],
)
