"""Trainers: their names, what grows, the parts of memory, and the process."""

from heapwatch.analysis.verdict import WORDS

from ..colors import CODES, LEAK
from ..promql import (
    NAME,
    SEEN,
    TRAINER,
    aged,
    current,
    forecast,
    limits,
    max_by,
    min_by,
    named,
    of_one,
    of_trainers,
    or_zero,
    rate,
    select,
    soon,
    soonest,
    sum_by,
    total,
)
from .explanation import EXPLAINS, GONE, HELD, LAST_LEAK, TRAINER_ALONE, by_word

# Who is there, and how are they.
NAMES = max_by(f"{TRAINER}, trainer_name", select(NAME))
# Why trainers ended unexpectedly, for a day.
CAUSES = max_by(f"{TRAINER}, cause", select("job:trainer:lost"))
# The worst of what alerts, explanation and scrapes say at one instant: the state that the rules record is as
# old as their last evaluation, so of that only what no alert says is taken. Where there is no explanation, it
# is too early for a quarter of an hour.
_STATE = select("job:trainer_verdict:state")
_KINDS = {"leak": "leak", "over a limit": "threshold|forecast", "growing": "growth"}


def _alerts(word: str) -> str:
    """The alerts that have a trainer called so."""
    return select("ALERTS", f'kind=~"{_KINDS[word]}"', alertstate="firing")


_DOWN = CODES["down or stalled"]
_STALLED = select("ALERTS", kind="health", resource="trainer", component="progress", alertstate="firing")
_WORST = max_by(
    TRAINER,
    " or ".join(
        (
            f"{_STATE} == {_DOWN:g} or {_DOWN:g} * {_STALLED}",
            *(f"{CODES[word]:g} * {_alerts(word)}" for word in _KINDS),
            by_word(*WORDS),
            f"clamp_max({_STATE}, 1) unless on ({TRAINER}) {EXPLAINS}",
        )
    ),
)
VERDICT = current(_WORST)
# Lives of processes that ended in the time range, with what was last known of them.
_LIFE = f"{TRAINER}, trainer_name"
_NAME = select(NAME)
_GONE = f"{SEEN} unless on ({_LIFE}) last_over_time({_NAME}[2m])"
ENDED = f"1000 * {max_by(_LIFE, _GONE)}"


def _last(series: str) -> str:
    """The last value of each process that ended; the next one at the same address is another process."""
    return f"last_over_time(({named(series)})[$__range:1m]) and on ({_LIFE}) {_GONE}"


LAST_VERDICT = max_by(_LIFE, _last(_WORST))
LAST_MEMORY = max_by(_LIFE, _last(select("job:trainer_memory:resident_bytes")))
LEAKS = _alerts("leak")
WORST_VERDICT = f"max({VERDICT})"
TRAINERS_COUNT = f"count({VERDICT})"


def trainers_that_are(*words: str) -> str:
    """How many trainers have one of these verdicts, or an alert for it beside a worse one; 0 if none.

    Absent when there is no trainer.
    """
    found = [f"{VERDICT} == {CODES[word]:g}" for word in words]
    found += [current(f"count by ({TRAINER}) ({_alerts(word)})") for word in words if word in _KINDS]
    return or_zero(f"count({' or '.join(found)})", TRAINERS_COUNT)


# Memory of the process tree: as the limits are compared with, pages that workers share not counted again.
RESIDENT_BY_ROLE = sum_by(f"{TRAINER}, role", select("trainer_process_resident_memory_bytes"))
RESIDENT = max_by(TRAINER, select("job:trainer_memory:resident_bytes"))
# Of one that is lost or does not answer the last that is known.
KNOWN_RESIDENT = f"{RESIDENT} or {max_by(TRAINER, select('job:trainer_known:memory_bytes'))}"
UNWATCHED = "job:machine_memory:unwatched_bytes"
UNIQUE_BY_ROLE = sum_by(f"{TRAINER}, role", select("trainer_process_unique_memory_bytes"))
MEMORY_LIMIT = max_by(TRAINER, select("trainer_memory_limit_bytes"))
MEMORY_AVAILABLE = max_by(TRAINER, select("job:trainer_memory:available_bytes"))
USED_SHARE = f"{RESIDENT} / {MEMORY_LIMIT}"
_KNOWN = (select(f"job:trainer_known:{what}_bytes") for what in ("memory", "available"))
KNOWN_USED_SHARE = f"{USED_SHARE} or {' / '.join(max_by(TRAINER, one) for one in _KNOWN)} and {GONE}"
MOST_USED = f"max({KNOWN_USED_SHARE})"
# Over ten minutes; of a younger process as it says itself, over its life.
_SLOPE = sum_by(TRAINER, aged(10, select("job:trainer_resource:growth_per_minute", resource="memory")))
MEMORY_GROWTH = f"({_SLOPE} or {max_by(TRAINER, select('trainer_memory_growth_bytes_per_minute'))})"
# Of one that is lost or does not answer that of the leak that it named last.
_LAST_GROWTH = sum_by(TRAINER, LAST_LEAK)
KNOWN_GROWTH = f"{current(MEMORY_GROWTH)} or {_LAST_GROWTH}"
MOST_GROWTH = f"max({MEMORY_GROWTH} or {_LAST_GROWTH})"

_TIME_TO_LIMIT = select("job:trainer_memory:time_to_limit_seconds")
# As the explanation says it, once growth is sure: the least; else by the rules.
_SAID = min_by(TRAINER, select("trainer_memory_time_to_limit_seconds", bound="least"))
TIME_TO_LIMIT = f"{_SAID} or {forecast(_TIME_TO_LIMIT, select('trainer_memory_limit_bytes'), TRAINER)}"
SHORTEST_TIME_TO_LIMIT = soonest(TIME_TO_LIMIT)
TIME_TO_LIMIT_SOON = f"{_SAID} or {soon(_TIME_TO_LIMIT, TRAINER)}"

# Memory explained: sums over the chosen trainers, so that the stack and its lines stay comparable.
RESIDENT_SUM = total(KNOWN_RESIDENT)
# The recorded level bridges a missed scrape, which would be a hole in the stack.
WORKERS_SUM = total(select("job:trainer_resource:level", resource="memory", component="worker"))
UNEXPLAINED = total(f"clamp_min({TRAINER_ALONE} - {HELD}, 0)")
# The lowest of a severity: one of the trainer's own process, or of the process with its workers.
MEMORY_LIMITS = of_one(min_by("severity", limits("memory", "all|trainer")))
MEMORY_OF_ALL = select("job:trainer_resource:total", resource="memory", component="all")

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
# The clock of another machine may be ahead.
SINCE_PROGRESS = (
    f"clamp_min(time() - {max_by(TRAINER, select('trainer_last_progress_timestamp_seconds'))}, 0)"
)
# Only in the minutes after a start: Grafana would mark one before the range at its left edge.
RESTARTS = f"1000 * ({max_by(TRAINER, of_trainers(select('process_start_time_seconds')))} > time() - 120)"

# The ranks of a distributed run, taken together.
_RUN = "job, trainer, run, world_size"
_RANK = max_by(f"instance, rank, {_RUN}", select("trainer_info", 'rank!=""'))


def _of_ranks(of_trainer: str) -> str:
    return f"({of_trainer}) * on (job, instance) group_left (trainer, run, world_size) {_RANK}"


RANKS = f"count by ({_RUN}) ({_RANK})"
WORST_VERDICT_OF_RANKS = max_by(_RUN, _of_ranks(VERDICT))
LEAKING_RANKS = sum_by(_RUN, _of_ranks(f"{VERDICT} == bool {LEAK}"))
MEMORY_OF_RANKS = sum_by(_RUN, _of_ranks(RESIDENT))
LARGEST_RANK = max_by(_RUN, _of_ranks(RESIDENT))
MEDIAN_RANK = f"quantile by ({_RUN}) (0.5, {_of_ranks(RESIDENT)})"
SMALLEST_RANK = min_by(_RUN, _of_ranks(RESIDENT))
