"""GPU memory and devices."""

from ..promql import (
    TRAINER,
    current,
    forecast,
    growth,
    increment,
    max_by,
    select,
    soon,
    soonest,
    sum_by,
    total,
)

_DEVICE = f"{TRAINER}, device"
_PART = f"{_DEVICE}, part"
INFO = max_by(f"{_DEVICE}, name, driver", select("trainer_gpu_info"))
ALLOCATED = max_by(_DEVICE, select("trainer_gpu_memory_allocated_bytes"))
RESERVED = max_by(_DEVICE, select("trainer_gpu_memory_reserved_bytes"))
CACHED = f"{RESERVED} - {ALLOCATED}"
USED = max_by(_DEVICE, select("trainer_gpu_memory_used_bytes"))
TOTAL = max_by(_DEVICE, select("trainer_gpu_memory_total_bytes"))
COUNT = f"count(count by (uuid) ({select('trainer_gpu_info')}))"
PROCESS = max_by(_DEVICE, select("trainer_gpu_process_memory_bytes"))
ALLOCATED_SUM = total(ALLOCATED)
CACHED_SUM = total(CACHED)


def part(name: str) -> str:
    """What the chosen trainers hold in this part of the devices' memory."""
    return total(select("trainer_gpu_memory_part_bytes", part=name))


def _once(series: str) -> str:
    """The sum over devices, each of them once: all ranks of a run may see the same ones."""
    uuid = f"on (job, instance, device) group_left (uuid) {select('trainer_gpu_info')}"
    return total(max_by("uuid", f"{series} * {uuid}"))


TOTAL_SUM = _once(select("trainer_gpu_memory_total_bytes"))
FREE_SUM = _once(select("trainer_gpu_memory_part_bytes", part="free"))
# The remainder, so that all parts add up even if memory cannot be attributed to processes.
_OF_TRAINERS = select("trainer_gpu_memory_part_bytes", 'part!~"free|driver|other_processes|unattributed"')
REST_SUM = f"clamp_min({TOTAL_SUM} - {FREE_SUM} - ({total(_OF_TRAINERS)} or 0 * {FREE_SUM}), 0)"

# Parts, and the verdict on each.
PARTS = max_by(_PART, select("trainer_gpu_memory_part_bytes"))
NOT_OF_TORCH = max_by(_PART, select("trainer_gpu_memory_part_bytes", 'part!~"free|driver|context|torch_.*"'))


def _of_part(of_component: str) -> str:
    """What was recorded for a component, `0` or `0 other_pools`, as of a device's part."""
    device = f'label_replace({of_component}, "device", "$1", "component", "([0-9]+).*")'
    torch = f'label_replace({device}, "part", "torch_in_use", "component", "[0-9]+")'
    return f'label_replace({torch}, "part", "$1", "component", "[0-9]+ (.+)")'


_NOT_RESERVED = 'component!~".* reserved"'
PART_GROWTH = max_by(_PART, _of_part(growth("gpu_memory", _NOT_RESERVED)))
_OF_GPU = f'resource="gpu_memory", {_NOT_RESERVED}'
_LEAKS = select("ALERTS", _OF_GPU, kind="leak", alertstate="firing")
_GROWS = select("ALERTS", _OF_GPU, 'kind=~"leak|growth"')
_FRAGMENTED = select("ALERTS", alertname="TrainerGpuFragmentation")
_JUDGED = select("trainer_gpu_memory_part_bytes", 'part!~"free|driver|context|(jax|cupy)_cached"')
_WARM = f"on (job, instance) {select('job:trainer_verdict:state')} > 0"
PART_VERDICT = current(
    max_by(
        _PART,
        f"{_of_part(f'(4 * {_LEAKS} or 2 * {_GROWS})')}"
        f' or label_replace(3 * {_of_part(_FRAGMENTED)}, "part", "torch_cached", "", "")'
        f" or (1 + 0 * {_JUDGED}) and {_WARM} or 0 * {_JUDGED}",
    )
)
UNUSABLE_SHARE = max_by(_DEVICE, select("trainer_gpu_memory_unusable_bytes")) + f" / {RESERVED}"
FRAGMENTED = (
    f"{total(select('job:trainer_gpu_memory:fragmented_bytes'))}"
    f" or 0 * {total(select('trainer_gpu_memory_unusable_bytes'))}"
)
RETRIES = sum_by(_DEVICE, increment(select("trainer_gpu_allocation_retries_total")))
USED_SHARE = f"{USED} / {TOTAL}"
FULLEST = f"max({USED_SHARE})"
UTILIZATION = max_by(_DEVICE, select("trainer_gpu_utilization_ratio"))
TEMPERATURE = max_by(_DEVICE, select("trainer_gpu_temperature_celsius"))
POWER = max_by(_DEVICE, select("trainer_gpu_power_watts"))
GROWTH = sum_by(f"{TRAINER}, component", growth("gpu_memory"))
MOST_GROWTH = f"max({GROWTH})"
_TIME_TO_LIMIT = select("job:trainer_gpu_memory:time_to_limit_seconds")
SHORTEST_TIME_TO_LIMIT = soonest(forecast(_TIME_TO_LIMIT, select("trainer_gpu_memory_total_bytes"), _DEVICE))
TIME_TO_LIMIT = soon(_TIME_TO_LIMIT, _DEVICE)
