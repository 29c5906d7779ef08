"""GPU memory: its parts, which of them grow, what is fragmented, and how long it lasts."""

from .. import colors
from ..colors import VERDICTS
from ..dashboard import Dashboard, Row, two_a_line
from ..empty import NO_GPU, NO_TORCH_GPU
from ..panel import BYTES, NUMBER, SECONDS, SHARE, Query, fixed, override
from ..panels import limit, lines, number
from ..promql import PROCESS, current, forecast, growth, max_by, select, soonest, sum_by, total
from ..queries.trainers import JUDGED, OF_THE_REST, said_time_left
from ..tables import BACKGROUND, Column, table
from .shared import (
    ADDRESS,
    BELOW_WARNING,
    FORECAST_WORDS,
    TIME_LEFT,
    USED,
    firing_alerts,
    growth_limit,
    share,
)

_DEVICE = f"{PROCESS}, device"
_PART = f"{_DEVICE}, part"
ALLOCATED = max_by(_DEVICE, select("trainer_gpu_memory_allocated_bytes"))
RESERVED = max_by(_DEVICE, select("trainer_gpu_memory_reserved_bytes"))
CACHED = f"{RESERVED} - {ALLOCATED}"
_USED = max_by(_DEVICE, select("trainer_gpu_memory_used_bytes"))
TOTAL = max_by(_DEVICE, select("trainer_gpu_memory_total_bytes"))
ALLOCATED_SUM = total(ALLOCATED)


def part(name: str) -> str:
    """What the trainer holds in this part of the devices' memory."""
    return total(select("trainer_gpu_memory_part_bytes", part=name))


TOTAL_SUM = total(select("trainer_gpu_memory_total_bytes"))
FREE_SUM = part("free")
# The remainder, so that all parts add up even if memory cannot be attributed to processes.
_OF_TRAINERS = select("trainer_gpu_memory_part_bytes", 'part!~"free|driver|other_processes|unattributed"')
REST_SUM = f"clamp_min({TOTAL_SUM} - {FREE_SUM} - ({total(_OF_TRAINERS)} or 0 * {FREE_SUM}), 0)"

# Parts, and the verdict on each.
NOT_OF_TORCH = max_by(_PART, select("trainer_gpu_memory_part_bytes", 'part!~"free|driver|context|torch_.*"'))


def _of_part(of_component: str) -> str:
    """What was recorded for a component, `0` or `0 other_pools`, as of a device's part."""
    device = f'label_replace({of_component}, "device", "$1", "component", "([0-9]+).*")'
    torch = f'label_replace({device}, "part", "torch_in_use", "component", "[0-9]+")'
    return f'label_replace({torch}, "part", "$1", "component", "[0-9]+ (.+)")'


_NOT_RESERVED = 'component!~".* reserved"'
_OF_GPU = f'resource="gpu_memory", alertstate="firing", {_NOT_RESERVED}'
_LEAKS = select("job:trainer_leak:current", resource="gpu_memory")
_GROWS = select("ALERTS", _OF_GPU, kind="growth")
_FRAGMENTED = select("ALERTS", alertname="TrainerGpuFragmentation", alertstate="firing")
_JUDGED = select("trainer_gpu_memory_part_bytes", 'part!~"free|driver|context|jax_cached"')
PART_VERDICT = current(
    max_by(
        _PART,
        f"{_of_part(f'(4 + 0 * {_LEAKS} or 2 * {_GROWS})')}"
        f' or label_replace(3 * {_of_part(_FRAGMENTED)}, "part", "torch_cached", "", "")'
        f" or 0 * {_JUDGED} + on (job, instance) group_left () {OF_THE_REST}",
    )
)
FRAGMENTED = (
    f"{total(select('job:trainer_gpu_memory:fragmented_bytes'))}"
    f" or 0 * {total(select('trainer_gpu_memory_unusable_bytes'))}"
)
USED_SHARE = f"{_USED} / {TOTAL}"
MEMORY_GROWTH = sum_by(f"{PROCESS}, component", growth("gpu_memory"))
_SAID = said_time_left('resource="gpu_memory"')
_FORECAST = forecast(_SAID, select("trainer_gpu_memory_total_bytes"), JUDGED)
SHORTEST_TIME_TO_LIMIT = soonest(_FORECAST)
PART_GROWTH = max_by(_PART, _of_part(growth("gpu_memory")))
UNUSABLE_SHARE = max_by(_DEVICE, select("trainer_gpu_memory_unusable_bytes")) + f" / {RESERVED}"

GLANCE = [
    number("Devices", f"count({select('trainer_gpu_info')})", NUMBER, "GPUs that the trainer sees."),
    number(
        "Fullest device",
        f"max({USED_SHARE})",
        SHARE,
        f"Memory in use over the device's memory. Good: {BELOW_WARNING}.",
        thresholds=USED,
    ),
    number("Allocated", ALLOCATED_SUM, BYTES, "Memory of live tensors. Good: the same after each step."),
    number(
        "Fragmented",
        FRAGMENTED,
        BYTES,
        "Memory that torch reserved and cannot use, because it is between blocks in use. Counted if it is a "
        "fifth of the reserve, and a twentieth of the GPU. Good: no.",
        words={0: ("no", colors.GOOD)},
        thresholds=colors.judged(colors.GOOD, (1, colors.WARNING)),
        empty=NO_TORCH_GPU,
    ),
    number("Growth per minute", f"max({MEMORY_GROWTH})", BYTES, "Slope of ten minutes. Good: around zero."),
    number(
        "Time to full",
        SHORTEST_TIME_TO_LIMIT,
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
            Query(ALLOCATED_SUM, "torch: in use"),
            Query(total(CACHED), "torch: reserved, not in use"),
            Query(part("jax_in_use"), "JAX: in use"),
            Query(part("jax_cached"), "JAX: reserved, not in use"),
            Query(part("context"), "CUDA context"),
            Query(part("other_pools"), "other pools"),
            Query(part("workers"), "worker processes"),
            Query(REST_SUM, "all others"),
            limit(TOTAL_SUM, total(select("trainer_gpu_memory_used_bytes")), "capacity limit"),
        ],
        BYTES,
        "All devices that the trainer sees. The parts add up to the memory in use: what "
        "torch and JAX use and keep, the CUDA context, other pools of the process, its workers, "
        "and all others: further processes, hidden ones and the driver. Good: flat. Bad: a band that widens "
        "with every step. Dashed, once it is near: the devices' memory.",
        empty=NO_GPU,
        style="areas",
        overrides=[override("all others", color=fixed(colors.UNKNOWN))],
        height=9,
        marked=True,
    )
]

NOW = table(
    "Devices now",
    [
        Column("Name", label="name"),
        Column("Device", label="device", width=80),
        Column("Driver", label="driver", width=110),
        *ADDRESS,
        Column("", max_by(f"{_DEVICE}, name, driver", select("trainer_gpu_info"))),
        Column("Memory", TOTAL, BYTES, width=100),
        share("Used", USED_SHARE, USED),
        Column("This trainer", max_by(_DEVICE, select("trainer_gpu_process_memory_bytes")), BYTES, width=110),
    ],
    "What each device is, and how much of it this trainer and everybody use.",
    height=5,
)

OF_PARTS = colors.value_mappings({**VERDICTS, 3: ("fragmented", colors.WARNING)})
PARTS = [
    table(
        "Parts of GPU memory",
        [
            Column("Verdict", PART_VERDICT, width=100, cell=BACKGROUND, options={"mappings": OF_PARTS}),
            Column("Part", label="part", width=130),
            Column("Device", label="device", width=60),
            Column("Bytes", max_by(_PART, select("trainer_gpu_memory_part_bytes")), BYTES, width=90),
            Column("Per minute", PART_GROWTH, BYTES, width=90),
            *ADDRESS,
        ],
        "Every part of each device, and the verdict on it: a leak, or torch's "
        "reserve fragmented. The parts of a device add up to the device's memory. The context "
        "is constant, and what is free is not judged.",
        empty=NO_GPU,
        sort_by="Verdict",
        width=12,
        height=10,
    ),
    lines(
        "Parts other than torch",
        Query(NOT_OF_TORCH, "{{part}}, GPU {{device}} {{trainer_name}}"),
        BYTES,
        "What JAX, other pools of the process, workers and other processes hold. Good: flat. Bad: one "
        "rises: torch does not know of it.",
        height=10,
        marked=True,
    ),
]

GROWTH = two_a_line(
    lines(
        "Allocated and reserved",
        [
            Query(ALLOCATED, "allocated, GPU {{device}} {{trainer_name}}"),
            Query(RESERVED, "reserved, GPU {{device}} {{trainer_name}}"),
        ],
        BYTES,
        "Good: both flat. Bad: if allocated rises, tensors are kept. If only reserved rises, it is "
        "fragmentation.",
        marked=True,
    ),
    lines(
        "GPU growth per minute",
        [Query(MEMORY_GROWTH, "GPU {{component}} {{trainer_name}}"), growth_limit("gpu_memory")],
        BYTES,
        "Slope of allocated memory over ten minutes. Good: around zero. Bad: above the limit for long.",
    ),
    lines(
        "Unusable share of the reserve",
        Query(UNUSABLE_SHARE, "GPU {{device}} {{trainer_name}}"),
        SHARE,
        "Reserved by torch between blocks in use: it can neither be returned nor used for a larger "
        "block. Good: a few per cent. Bad: above 20 % for ten minutes.",
        empty=NO_TORCH_GPU,
    ),
)

DASHBOARD = Dashboard(
    uid="heapwatch-gpu",
    description="What fills the GPU memory, which part grows, and when is a device full?",
    rows=[
        Row("", [GLANCE, EXPLAINED, [NOW]]),
        Row("Parts", [PARTS]),
        Row("Growth", GROWTH),
        Row("Alerts", [[firing_alerts()]]),
    ],
)
