"""Every PromQL expression of the trainers' dashboards, by name.

Levels and growth come from the recorded series of `prometheus/rules`, so a panel and an alert never disagree.
Sizes are in bytes, durations in seconds, growth per minute.
"""

from .promql import (
    TRAINER,
    in_range,
    increment,
    increment_from_zero,
    max_by,
    min_by,
    or_zero,
    rate,
    select,
    started,
    sum_by,
    total,
)


def growth(resource: str, *matchers: str) -> str:
    """Growth per minute of what is watched, as recorded; not before ten minutes of a trainer's life."""
    return aged(10, select("job:trainer_resource:growth_per_minute", *matchers, resource=resource))


def growth_per_cycle(resource: str) -> str:
    """Growth per epoch or generation of what is watched, as recorded."""
    return max_by(
        "job, instance, component, per", select("job:trainer_resource:growth_per_cycle", resource=resource)
    )


def limits(resource: str, component: str) -> str:
    """The limits in force for trainers that have this resource, one series a severity for each of them."""
    return (
        f"{select('job:trainer_limit:effective', resource=resource, component=component)}"
        f" and on (job, instance) {select('job:trainer_resource:level', resource=resource)}"
    )


def growth_limit(resource: str, per: str = "minute") -> str:
    """The growth limit in force: the lowest among the chosen trainers."""
    return min_by("per", select("job:trainer_growth_limit:effective", resource=resource, per=per))


def aged(minutes: int, expression: str) -> str:
    """Only of processes that are the same as so many minutes ago: before that it says nothing."""
    return f"({expression}) and on (job, instance) ({_START} == {_START} offset {minutes}m)"


def current(expression: str) -> str:
    """Only of trainers that are there or missed: one that ended took its target back."""
    missed = select("ALERTS", 'component=~"process|progress"', kind="health", resource="trainer")
    return f"({expression}) and on (job, instance) ({select('up')} or {missed})"


def _of_trainers(expression: str) -> str:
    """Only what trainers say: the stack's own services have the metrics of a process too."""
    return f"{expression} and on (job, instance) {select('trainer_info')}"


# Who is there, and how are they.
_START = select("job:trainer_process:start")
TRAINERS = max_by("job, instance, trainer, framework", select("trainer_info"))
VERDICT = current(max_by(TRAINER, select("job:trainer_verdict:state")))
WORST_VERDICT = f"max({VERDICT})"
TRAINERS_COUNT = f"count({VERDICT})"


def trainers_in_state(state: int) -> str:
    """How many trainers have this verdict: 0 when none has, absent when there is no trainer."""
    return or_zero(f"count({VERDICT} == {state})", TRAINERS_COUNT)


def trainers_with_alert(kind: str) -> str:
    """How many trainers have a firing alert of this kind (regular expression), among others."""
    alerts = select("ALERTS", f'kind=~"{kind}"', alertstate="firing")
    return or_zero(f"count({current(f'count by ({TRAINER}) ({alerts})')})", TRAINERS_COUNT)


# What grows: alerts of growth and of leaks, from pending on.
_WHAT = f"{TRAINER}, resource, component"
_GROWS = select("ALERTS", 'kind=~"leak|growth"')
_LEAKS = select("ALERTS", kind="leak", alertstate="firing")
GROWING_VERDICT = current(max_by(_WHAT, f"4 * {_LEAKS} or 2 * {_GROWS}"))
_GROWS_SINCE = select("ALERTS_FOR_STATE", 'kind=~"leak|growth"')
GROWING_SINCE = current(min_by(_WHAT, f"1000 * {_GROWS_SINCE}"))


def _growing(resources: str) -> tuple[str, str]:
    """Growth per minute and level of what grows, of these resources (regular expression)."""

    def of(*names: str) -> str:
        series = " or ".join(select(f"job:{name}", f'resource=~"{resources}"') for name in names)
        return current(max_by(_WHAT, f"({series}) and on ({_WHAT}) {_GROWS}"))

    return (
        of("trainer_leak:confirmed_per_minute", "trainer_resource:growth_per_minute"),
        of("trainer_resource:level", "trainer_resource:total"),
    )


GROWING_BYTES_PER_MINUTE, GROWING_BYTES = _growing("memory|gpu_memory|object_size")
GROWING_ITEMS_PER_MINUTE, GROWING_ITEMS = _growing("bodies|entities|events|buffer|objects")


# Memory of the process tree.
_RESIDENT = select("trainer_process_resident_memory_bytes")
RESIDENT_BY_ROLE = sum_by(f"{TRAINER}, role", _RESIDENT)
RESIDENT = sum_by(TRAINER, _RESIDENT)
UNIQUE_BY_ROLE = sum_by(f"{TRAINER}, role", select("trainer_process_unique_memory_bytes"))
MEMORY_LIMIT = max_by(TRAINER, select("trainer_memory_limit_bytes"))
USED_SHARE = f"{RESIDENT} / {MEMORY_LIMIT}"
USED_SHARES = f"sort_desc({USED_SHARE})"
MOST_USED = f"max({USED_SHARE})"
MEMORY_GROWTH = sum_by(TRAINER, growth("memory"))
MOST_GROWTH = f"max({MEMORY_GROWTH})"

# Forecasts: stat, table and chart show the same, no further than half an hour of growth can be trusted.
_SOON = 3 * 86400
TOO_EARLY, NOT_SOON = -1, -2
FORECAST_MINUTES = 40


def forecast(expression: str, known: str, labels: str) -> str:
    """Seconds until the limit; TOO_EARLY for young processes, NOT_SOON beyond three days or without growth.

    `known` is a series of every trainer or device that could have a forecast.
    """
    exists = f"0 * {max_by(labels, known)}"
    return (
        f"{min_by(labels, aged(FORECAST_MINUTES, expression))} < {_SOON}"
        f" or ({aged(FORECAST_MINUTES, exists)}) + {NOT_SOON} or {exists} + {TOO_EARLY}"
    )


def soonest(forecast: str) -> str:
    """The shortest of several forecasts; without one, whether it is too early for any."""
    return f"min(({forecast}) >= 0) or max({forecast})"


TIME_TO_LIMIT = forecast(
    select("job:trainer_memory:time_to_limit_seconds"), select("trainer_memory_limit_bytes"), TRAINER
)
SHORTEST_TIME_TO_LIMIT = soonest(TIME_TO_LIMIT)
TIME_TO_LIMIT_SOON = f"({TIME_TO_LIMIT}) >= 0"

# Memory explained: sums over the chosen trainers, so that the stack and its lines stay comparable.
RESIDENT_SUM = total(_RESIDENT)
EXPLAINED = sum_by("component", select("job:trainer_memory:explained_bytes"))
WORKERS_SUM = total(select("trainer_process_resident_memory_bytes", role="worker"))
_TRAINER_ALONE = sum_by(TRAINER, select("trainer_process_resident_memory_bytes", role="trainer"))
_EXPLAINED_ALONE = sum_by(TRAINER, select("job:trainer_memory:explained_bytes"))
UNEXPLAINED = total(f"clamp_min({_TRAINER_ALONE} - ({_EXPLAINED_ALONE} or 0 * {_TRAINER_ALONE}), 0)")
MEMORY_LIMITS_SUM = sum_by("severity", limits("memory", "trainer"))

# The share that a leak alert names, and that of a buffer past its bound before memory itself is judged.
_PAST_BOUND = select("ALERTS", alertname="TrainerLeakPastBound", alertstate="firing")
_PAST_BOUND_GROWTH = (
    f"60 * deriv({select('job:trainer_memory:explained_bytes')}[10m])"
    f" and on (job, instance, component) {_PAST_BOUND}"
)
_SHARES = max_by(
    f"{TRAINER}, component",
    f"({select('job:trainer_leak:share')}"
    f" or clamp_max(({_PAST_BOUND_GROWTH}) / on (job, instance) group_left () ({MEMORY_GROWTH} > 0), 1) > 0)",
)
SUSPECTS = f"sort_desc({max_by('component', _SHARES)})"
TOP_SUSPECTS = f"topk by ({TRAINER}) (1, {_SHARES})"

# Life of the process.
CPU = sum_by(f"{TRAINER}, role", rate(select("trainer_process_cpu_seconds_total")))
PROCESSES = sum_by(f"{TRAINER}, role", select("trainer_processes"))
OPEN_FILES = max_by(TRAINER, _of_trainers(select("process_open_fds")))
ALLOCATOR_USED = max_by(TRAINER, select("trainer_allocator_used_bytes"))
ALLOCATOR_RETAINED = max_by(TRAINER, select("trainer_allocator_retained_bytes"))
PYTHON_BLOCKS = max_by(TRAINER, select("trainer_python_allocated_blocks"))
PROGRESS = sum_by(f"{TRAINER}, unit", rate(select("trainer_progress_total")))
SINCE_PROGRESS = f"time() - {max_by(TRAINER, select('trainer_last_progress_timestamp_seconds'))}"
# Only in the minutes after a start: Grafana would mark one before the range at its left edge.
RESTARTS = f"1000 * ({max_by(TRAINER, _of_trainers(select('process_start_time_seconds')))} > time() - 120)"

# Physics world.
_BODIES = select("trainer_bodies")
BODIES_BY_TYPE = sum_by("type", _BODIES)
BODIES = sum_by(TRAINER, _BODIES)
BODIES_SUM = total(_BODIES)
STATIC_BODIES = sum_by(TRAINER, select("trainer_bodies", type="static"))
UNKNOWN_BODIES = sum_by(TRAINER, select("trainer_bodies", type="unknown"))
UNKNOWN_BODIES_SUM = total(UNKNOWN_BODIES)
BODIES_GROWTH = sum_by(f"{TRAINER}, component", growth("bodies", 'component!="all"'))
BODIES_GROWTH_SUM = total(BODIES_GROWTH)
BODY_LIMITS_SUM = sum_by("severity", limits("bodies", "all"))
BODY_LIMITS = min_by("severity", limits("bodies", "all"))
FOOD_LIMITS = min_by("severity", limits("entities", "food_sources"))
STATIC_BODY_LIMITS = min_by("severity", limits("bodies", "static"))
ENTITIES = sum_by(f"{TRAINER}, type", select("trainer_entities"))
ENTITIES_SUM = total(select("trainer_entities"))
ENTITIES_GROWTH = sum_by(f"{TRAINER}, component", growth("entities"))
_LIST = f"{TRAINER}, list"
EVENTS = sum_by(_LIST, select("trainer_event_list_items"))
EVENTS_SUM = total(EVENTS)
EVENTS_GROWTH = sum_by(f"{TRAINER}, component", growth("events"))
EVENTS_CAPACITY = sum_by(_LIST, select("trainer_event_list_capacity_items"))
EVENTS_FILL = f"{EVENTS} / {EVENTS_CAPACITY}"
FULLEST_EVENTS = f"max({EVENTS_FILL})"

# Buffers.
_BUFFER = f"{TRAINER}, buffer"
_ITEMS = select("trainer_buffer_items")
BUFFER_ITEMS = sum_by(_BUFFER, _ITEMS)
BUFFER_CAPACITY_ITEMS = sum_by(_BUFFER, select("trainer_buffer_capacity_items"))
BUFFER_BYTES = sum_by(_BUFFER, select("trainer_buffer_bytes"))
BUFFER_CAPACITY_BYTES = sum_by(_BUFFER, select("trainer_buffer_capacity_bytes"))
BUFFER_FILL = f"{BUFFER_ITEMS} / {BUFFER_CAPACITY_ITEMS}"
BUFFER_ITEM_BYTES = f"{BUFFER_BYTES} / ({BUFFER_ITEMS} > 0)"
BUFFER_TIME_TO_FULL = (
    f"({BUFFER_CAPACITY_ITEMS} - {BUFFER_ITEMS} > 0) / ({sum_by(_BUFFER, f'deriv({_ITEMS}[30m])')} > 0)"
)
BUFFER_BYTES_SUM = total(BUFFER_BYTES)
BUFFER_CAPACITY_SUM = total(BUFFER_CAPACITY_BYTES)
UNBOUNDED_BUFFERS = f"{BUFFER_ITEMS} unless {BUFFER_CAPACITY_ITEMS}"
UNBOUNDED_BUFFERS_COUNT = or_zero(f"count({UNBOUNDED_BUFFERS})", f"count({BUFFER_ITEMS})")
_TO_FILL = sum_by(TRAINER, f"clamp_min({BUFFER_CAPACITY_BYTES} - {BUFFER_BYTES}, 0)")
MEMORY_WHEN_FULL = f"{RESIDENT} + {_TO_FILL}"
FULL_SHARE = f"max(({MEMORY_WHEN_FULL}) / {MEMORY_LIMIT})"
ATTACHED_TENSORS = sum_by(_BUFFER, select("trainer_buffer_attached_tensors"))
ATTACHED_TENSORS_SUM = total(ATTACHED_TENSORS)

# Cycles: what a trainer repeats, an epoch or a generation.
_CYCLES = select("trainer_progress_total", 'unit=~"epoch|generation"')
CYCLES_IN_RANGE = max_by(TRAINER, in_range("increase", _CYCLES))
CYCLES_IN_RANGE_SUM = f"round(sum({CYCLES_IN_RANGE}))"
_PER_CYCLE = f"on (job, instance) group_left () ({CYCLES_IN_RANGE} > 0)"
CYCLES_LAST_HOUR = f"sum({max_by(TRAINER, f'increase({_CYCLES}[1h])')})"

# Objects.
OBJECTS = sum_by(f"{TRAINER}, type", select("trainer_objects"))
OBJECTS_GROWTH = sum_by(f"{TRAINER}, component", growth("objects"))
_OBJECT = f"{TRAINER}, object"
OBJECT_SIZES = sum_by(_OBJECT, select("trainer_object_size_bytes"))
OBJECT_SIZES_SUM = total(OBJECT_SIZES)
OBJECT_GROWTH_IN_RANGE = sum_by(_OBJECT, in_range("delta", select("trainer_object_size_bytes")))
OBJECT_GROWTH_PER_CYCLE = growth_per_cycle("object_size")

# Phases.
_PHASE = f"{TRAINER}, phase"
_PHASE_END = select("trainer_phase_end_resident_memory_bytes")
PHASE_END = max_by(_PHASE, _PHASE_END)
PHASE_GAIN = max_by(_PHASE, select("trainer_phase_memory_delta_bytes"))
PHASE_GROWTH_IN_RANGE = max_by(_PHASE, in_range("delta", _PHASE_END))
PHASE_THAT_GAINS_MOST = f"topk(1, max by (phase) ({PHASE_GROWTH_IN_RANGE}))"
PHASE_GROWTH_PER_CYCLE = f"{PHASE_GROWTH_IN_RANGE} / {_PER_CYCLE}"
MEMORY_GROWTH_PER_CYCLE = growth_per_cycle("memory")
MOST_GROWTH_PER_CYCLE = f"max({MEMORY_GROWTH_PER_CYCLE})"
_PHASE_SECONDS = select("trainer_phase_duration_seconds_sum")
_PHASE_COUNT = select("trainer_phase_duration_seconds_count")
PHASE_RUNS = max_by(_PHASE, in_range("increase", _PHASE_COUNT))
_RUNS_RECENTLY = max_by(_PHASE, f"increase({_PHASE_COUNT}[30m])")
PHASE_DURATION = f"{max_by(_PHASE, f'increase({_PHASE_SECONDS}[30m])')} / ({_RUNS_RECENTLY} > 0)"
PHASE_DURATION_IN_RANGE = f"{max_by(_PHASE, in_range('increase', _PHASE_SECONDS))} / ({PHASE_RUNS} > 0)"
_PHASE_TIME = max_by(_PHASE, in_range("increase", _PHASE_SECONDS))
PHASE_TIME_SHARE = (
    f"sort_desc({_PHASE_TIME} / on (job, instance) group_left () {sum_by(TRAINER, _PHASE_TIME)})"
)
_CYCLE_ENDED = f"({_CYCLES} > last_over_time({_CYCLES}[5m] offset $__interval))"
CYCLE_AT_ITS_END = f"max({_CYCLE_ENDED})"
PHASE_END_AT_CYCLE_END = max_by("phase", f"{_PHASE_END} and on (job, instance) {_CYCLE_ENDED}")

# GPU.
_DEVICE = f"{TRAINER}, device"
GPU_INFO = max_by(f"{_DEVICE}, name, driver", select("trainer_gpu_info"))
GPU_ALLOCATED = max_by(_DEVICE, select("trainer_gpu_memory_allocated_bytes"))
GPU_RESERVED = max_by(_DEVICE, select("trainer_gpu_memory_reserved_bytes"))
GPU_CACHED = f"{GPU_RESERVED} - {GPU_ALLOCATED}"
GPU_USED = max_by(_DEVICE, select("trainer_gpu_memory_used_bytes"))
GPU_TOTAL = max_by(_DEVICE, select("trainer_gpu_memory_total_bytes"))
GPU_COUNT = f"count({GPU_TOTAL})"
GPU_PROCESS = max_by(_DEVICE, select("trainer_gpu_process_memory_bytes"))
GPU_CONTEXT = f"clamp_min({GPU_PROCESS} - {GPU_RESERVED}, 0)"
GPU_OTHERS = f"clamp_min({GPU_USED} - {GPU_PROCESS}, 0)"
GPU_ALLOCATED_SUM = total(GPU_ALLOCATED)
GPU_CACHED_SUM = total(GPU_CACHED)
GPU_CONTEXT_SUM = total(GPU_CONTEXT)
GPU_OTHERS_SUM = total(GPU_OTHERS)
GPU_TOTAL_SUM = total(GPU_TOTAL)
GPU_USED_SHARE = f"{GPU_USED} / {GPU_TOTAL}"
FULLEST_GPU = f"max({GPU_USED_SHARE})"
GPU_UTILIZATION = max_by(_DEVICE, select("trainer_gpu_utilization_ratio"))
GPU_TEMPERATURE = max_by(_DEVICE, select("trainer_gpu_temperature_celsius"))
GPU_POWER = max_by(_DEVICE, select("trainer_gpu_power_watts"))
GPU_GROWTH = sum_by(f"{TRAINER}, component", growth("gpu_memory"))
MOST_GPU_GROWTH = f"max({GPU_GROWTH})"
_GPU_FORECAST = forecast(
    select("job:trainer_gpu_memory:time_to_limit_seconds"), select("trainer_gpu_memory_total_bytes"), _DEVICE
)
GPU_SHORTEST_TIME_TO_LIMIT = soonest(_GPU_FORECAST)
GPU_TIME_TO_LIMIT = f"({_GPU_FORECAST}) >= 0"

# Alerts.
_ALERT = f"alertname, severity, kind, resource, component, {TRAINER}"
_FIRING = select("ALERTS", alertstate="firing")
_PENDING = select("ALERTS", alertstate="pending")
ALERTS_FIRING_COUNT = f"count({_FIRING}) or vector(0)"
ALERTS_PENDING_COUNT = f"count({_PENDING}) or vector(0)"
ALERTS_FIRING_BY_TRAINER = _of_trainers(f"count by ({TRAINER}) ({_FIRING})")
ALERT_STATES = max_by(f"alertname, component, {TRAINER}", f"2 * {_FIRING} or {_PENDING}")
ALERTS_SINCE = max_by(_ALERT, f"1000 * ({select('ALERTS_FOR_STATE')} and ignoring (alertstate) {_FIRING})")
_MAJOR = max_by(_ALERT, f"{_LEAKS} or {select('ALERTS', alertstate='firing', severity='critical')}")
_ANY = max_by(_ALERT, _FIRING)
MAJOR_ALERT_STARTS = started(_MAJOR)
MINOR_ALERT_STARTS = f"({started(_ANY)}) unless ({_MAJOR})"
ALERTS_FIRED_FOR = max_by(_ALERT, f"60 * count_over_time({_FIRING}[$__range:1m])")

# Cleanups, as the trainers count them: the count of durations starts at 0, so the first one shows.
# The step matters: $__interval makes sure that no event falls between two steps, and none is counted twice.
_ACTION = f"{TRAINER}, action"
_CLEANUPS = select("trainer_cleanup_duration_seconds_count")
CLEANUP_EVENTS = f"{sum_by(_ACTION, increment(_CLEANUPS))} > 0"
CLEANUPS_IN_RANGE = f"round({total(in_range('increase', _CLEANUPS))})"
LAST_CLEANUP = (
    f"1000 * max_over_time(timestamp({sum_by(TRAINER, increment(_CLEANUPS, '1m'))} > 0)[$__range:1m])"
)
_FREED = select("trainer_cleanup_freed_bytes_total")
FREED = f"{sum_by(_ACTION, increment(_FREED))} > 0"
FREED_IN_RANGE = total(in_range("increase", _FREED))
FREED_IN_RANGE_BY_TRAINER = sum_by(TRAINER, in_range("increase", _FREED))
REMOVED = f"{sum_by('resource', increment_from_zero(select('trainer_cleanup_removed_total')))} > 0"
_CLEANUP_SECONDS = increment(select("trainer_cleanup_duration_seconds_sum"))
CLEANUP_DURATION = f"{sum_by(_ACTION, _CLEANUP_SECONDS)} / ({CLEANUP_EVENTS})"
