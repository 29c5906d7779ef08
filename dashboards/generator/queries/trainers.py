"""Who trains, what grows in it, what its memory consists of, and how its process does."""

from ..promql import TRAINER, max_by, min_by, or_zero, rate, select, sum_by, total
from .recorded import aged, current, forecast, limits, of_trainers, slope, soon, soonest

# Who is there, and how are they.
# A rank of a distributed run reads "ppo rank 3".
_RANKS = select("trainer_info", 'rank!=""')
_SINGLE = select("trainer_info", 'rank=""')
TRAINERS = max_by(
    f"{TRAINER}, trainer", f'label_join({_RANKS}, "trainer", " rank ", "trainer", "rank") or {_SINGLE}'
)
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
LEAKS = select("ALERTS", kind="leak", alertstate="firing")
GROWING_VERDICT = current(max_by(_WHAT, f"4 * {LEAKS} or 2 * {_GROWS}"))
_GROWS_SINCE = select("ALERTS_FOR_STATE", 'kind=~"leak|growth"')
GROWING_SINCE = current(min_by(_WHAT, f"1000 * {_GROWS_SINCE}"))


def _growing(resources: str) -> tuple[str, str]:
    """Growth per minute and level of what grows, of these resources (regular expression)."""
    chosen = f'resource=~"{resources}"'

    def of(*series: str) -> str:
        return current(max_by(_WHAT, f"({' or '.join(series)}) and on ({_WHAT}) {_GROWS}"))

    return (
        of(
            select("job:trainer_leak:confirmed_per_minute", chosen),
            select("job:trainer_resource:growth_per_minute", chosen),
            slope(chosen),
        ),
        of(select("job:trainer_resource:level", chosen), select("job:trainer_resource:total", chosen)),
    )


GROWING_BYTES_PER_MINUTE, GROWING_BYTES = _growing("memory|gpu_memory|object_size")
GROWING_ITEMS_PER_MINUTE, GROWING_ITEMS = _growing("bodies|entities|events|buffer|objects")


# Memory of the process tree.
_RESIDENT = select("trainer_process_resident_memory_bytes")
RESIDENT_BY_ROLE = sum_by(f"{TRAINER}, role", _RESIDENT)
RESIDENT = sum_by(TRAINER, _RESIDENT)
UNWATCHED = "job:machine_memory:unwatched_bytes"
UNIQUE_BY_ROLE = sum_by(f"{TRAINER}, role", select("trainer_process_unique_memory_bytes"))
MEMORY_LIMIT = max_by(TRAINER, select("trainer_memory_limit_bytes"))
MEMORY_LEFT = (
    f"{select('job:trainer_memory:available_bytes')} - {select('job:trainer_memory:resident_bytes')}"
)
USED_SHARE = f"{RESIDENT} / {MEMORY_LIMIT}"
MOST_USED = f"max({USED_SHARE})"
MEMORY_GROWTH = sum_by(TRAINER, aged(10, select("job:trainer_resource:growth_per_minute", resource="memory")))
MOST_GROWTH = f"max({MEMORY_GROWTH})"

_TIME_TO_LIMIT = select("job:trainer_memory:time_to_limit_seconds")
TIME_TO_LIMIT = forecast(_TIME_TO_LIMIT, select("trainer_memory_limit_bytes"), TRAINER)
SHORTEST_TIME_TO_LIMIT = soonest(TIME_TO_LIMIT)
TIME_TO_LIMIT_SOON = soon(_TIME_TO_LIMIT, TRAINER)

# Memory explained: sums over the chosen trainers, so that the stack and its lines stay comparable.
RESIDENT_SUM = total(_RESIDENT)
EXPLAINED = sum_by("component", select("job:trainer_memory:explained_bytes"))
# The recorded level bridges a missed scrape, which would be a hole in the stack.
WORKERS_SUM = total(select("job:trainer_resource:level", resource="memory", component="worker"))
_TRAINER_ALONE = sum_by(TRAINER, select("job:trainer_resource:level", resource="memory", component="trainer"))
_EXPLAINED_ALONE = sum_by(TRAINER, select("job:trainer_memory:explained_bytes"))
UNEXPLAINED = total(f"clamp_min({_TRAINER_ALONE} - ({_EXPLAINED_ALONE} or 0 * {_TRAINER_ALONE}), 0)")
# The lowest of a severity: one of the trainer's own process, or of the process with its workers.
MEMORY_LIMITS_SUM = sum_by("severity", min_by(f"{TRAINER}, severity", limits("memory", "all|trainer")))
MEMORY_OF_ALL = select("job:trainer_resource:total", resource="memory", component="all")

# What the explainer of a trainer found: paths from a root of the program to what grows.
_PATH = f"{TRAINER}, path, type"
_IS_LEAK = max_by(f"{_PATH}, site, remedy", select("trainer_growing_path_leak"))
PATH_IS_LEAK = current(_IS_LEAK)


def _of_path(series: str) -> str:
    """A value of each growing path, with the labels that its row has."""
    return current(f"0 * {_IS_LEAK} + on ({_PATH}) group_left () {max_by(_PATH, select(series))}")


PATH_BYTES_PER_MINUTE = _of_path("trainer_growing_path_growth_bytes_per_minute")
PATH_BYTES = _of_path("trainer_growing_path_bytes")
PATH_SHARE = _of_path("trainer_growing_path_share_ratio")
PATHS_OVER_TIME = sum_by("path", select("trainer_growing_path_bytes"))

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
OPEN_FILES = max_by(TRAINER, of_trainers(select("process_open_fds")))
ALLOCATOR_USED = max_by(TRAINER, select("trainer_allocator_used_bytes"))
ALLOCATOR_RETAINED = max_by(TRAINER, select("trainer_allocator_retained_bytes"))
PYTHON_BLOCKS = max_by(TRAINER, select("trainer_python_allocated_blocks"))
# A cycle takes minutes: over the usual window the rate would be zero most of the time.
_STEPS = rate(select("trainer_progress_total", 'unit!~"epoch|generation"'))
_CYCLES = select("trainer_progress_total", 'unit=~"epoch|generation"')
PROGRESS = sum_by(f"{TRAINER}, unit", f"{_STEPS} or increase({_CYCLES}[30m]) / 1800")
SINCE_PROGRESS = f"time() - {max_by(TRAINER, select('trainer_last_progress_timestamp_seconds'))}"
# Only in the minutes after a start: Grafana would mark one before the range at its left edge.
RESTARTS = f"1000 * ({max_by(TRAINER, of_trainers(select('process_start_time_seconds')))} > time() - 120)"
