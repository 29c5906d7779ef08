"""Trainers: their names, what grows, the parts of memory, and the process."""

from heapwatch.judge.verdict import WORDS

from ..colors import CODES
from ..promql import (
    PROCESS,
    aged,
    current,
    forecast,
    max_by,
    min_by,
    of_trainers,
    or_zero,
    rate,
    select,
    soon,
    soonest,
    sum_by,
)
from .explanation import EXPLAINS, GONE, LAST_LEAK, by_word

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
WORST = max_by(
    PROCESS,
    " or ".join(
        (
            f"{_STATE} == {_DOWN:g} or {_DOWN:g} * {_STALLED}",
            *(f"{CODES[word]:g} * {_alerts(word)}" for word in _KINDS),
            by_word(*WORDS),
            f"clamp_max({_STATE}, 1) unless on ({PROCESS}) {EXPLAINS}",
        )
    ),
)
VERDICT = current(WORST)
LEAKS = _alerts("leak")
TRAINERS_COUNT = f"count({VERDICT})"


def trainers_that_are(*words: str) -> str:
    """How many trainers have one of these verdicts, or an alert for it beside a worse one; 0 if none.

    Absent when there is no trainer.
    """
    found = [f"{VERDICT} == {CODES[word]:g}" for word in words]
    found += [current(f"count by ({PROCESS}) ({_alerts(word)})") for word in words if word in _KINDS]
    return or_zero(f"count({' or '.join(found)})", TRAINERS_COUNT)


# Memory of the process tree: as the limits are compared with, pages that workers share not counted again.
RESIDENT = max_by(PROCESS, select("job:trainer_memory:resident_bytes"))
# Of one that is lost or does not answer the last that is known.
KNOWN_RESIDENT = f"{RESIDENT} or {max_by(PROCESS, select('job:trainer_known:memory_bytes'))}"
MEMORY_LIMIT = max_by(PROCESS, select("trainer_memory_limit_bytes"))
USED_SHARE = f"{RESIDENT} / {MEMORY_LIMIT}"
_KNOWN = (select(f"job:trainer_known:{what}_bytes") for what in ("memory", "available"))
KNOWN_USED_SHARE = f"{USED_SHARE} or {' / '.join(max_by(PROCESS, one) for one in _KNOWN)} and {GONE}"
# Over ten minutes; of a younger process as it says itself, over its life.
_SLOPE = sum_by(PROCESS, aged(10, select("job:trainer_resource:growth_per_minute", resource="memory")))
MEMORY_GROWTH = f"({_SLOPE} or {max_by(PROCESS, select('trainer_memory_growth_bytes_per_minute'))})"
# Of one that is lost or does not answer that of the leak that it named last.
_LAST_GROWTH = sum_by(PROCESS, LAST_LEAK)
KNOWN_GROWTH = f"{current(MEMORY_GROWTH)} or {_LAST_GROWTH}"
MOST_GROWTH = f"max({MEMORY_GROWTH} or {_LAST_GROWTH})"

_TIME_TO_LIMIT = select("job:trainer_memory:time_to_limit_seconds")
# As the explanation says it, once growth is sure: the least; else by the rules.
_SAID = min_by(PROCESS, select("trainer_memory_time_to_limit_seconds", bound="least"))
TIME_TO_LIMIT = f"{_SAID} or {forecast(_TIME_TO_LIMIT, select('trainer_memory_limit_bytes'), PROCESS)}"
SHORTEST_TIME_TO_LIMIT = soonest(TIME_TO_LIMIT)
TIME_TO_LIMIT_SOON = f"{_SAID} or {soon(_TIME_TO_LIMIT, PROCESS)}"

# A cycle takes minutes: over the usual window the rate would be zero most of the time.
_STEPS = rate(select("trainer_progress_total", 'unit!~"epoch|generation"'))
_CYCLES = select("trainer_progress_total", 'unit=~"epoch|generation"')
PROGRESS = sum_by(f"{PROCESS}, unit", f"{_STEPS} or increase({_CYCLES}[30m]) / 1800")
# Only in the minutes after a start: Grafana would mark one before the range at its left edge.
RESTARTS = f"1000 * ({max_by(PROCESS, of_trainers(select('process_start_time_seconds')))} > time() - 120)"
