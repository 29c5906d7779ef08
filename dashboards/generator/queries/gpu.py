"""GPU memory and devices."""

from ..promql import TRAINER, max_by, select, sum_by, total
from .recorded import forecast, growth, soonest

# GPU.
_DEVICE = f"{TRAINER}, device"
INFO = max_by(f"{_DEVICE}, name, driver", select("trainer_gpu_info"))
ALLOCATED = max_by(_DEVICE, select("trainer_gpu_memory_allocated_bytes"))
RESERVED = max_by(_DEVICE, select("trainer_gpu_memory_reserved_bytes"))
CACHED = f"{RESERVED} - {ALLOCATED}"
USED = max_by(_DEVICE, select("trainer_gpu_memory_used_bytes"))
TOTAL = max_by(_DEVICE, select("trainer_gpu_memory_total_bytes"))
COUNT = f"count({TOTAL})"
PROCESS = max_by(_DEVICE, select("trainer_gpu_process_memory_bytes"))
CONTEXT = f"clamp_min({PROCESS} - {RESERVED}, 0)"
OTHERS = f"clamp_min({USED} - {PROCESS}, 0)"
ALLOCATED_SUM = total(ALLOCATED)
CACHED_SUM = total(CACHED)
CONTEXT_SUM = total(CONTEXT)
OTHERS_SUM = total(OTHERS)
TOTAL_SUM = total(TOTAL)
USED_SHARE = f"{USED} / {TOTAL}"
FULLEST = f"max({USED_SHARE})"
UTILIZATION = max_by(_DEVICE, select("trainer_gpu_utilization_ratio"))
TEMPERATURE = max_by(_DEVICE, select("trainer_gpu_temperature_celsius"))
POWER = max_by(_DEVICE, select("trainer_gpu_power_watts"))
GROWTH = sum_by(f"{TRAINER}, component", growth("gpu_memory"))
MOST_GROWTH = f"max({GROWTH})"
_FORECAST = forecast(
    select("job:trainer_gpu_memory:time_to_limit_seconds"), select("trainer_gpu_memory_total_bytes"), _DEVICE
)
SHORTEST_TIME_TO_LIMIT = soonest(_FORECAST)
TIME_TO_LIMIT = f"({_FORECAST}) >= 0"
