"""Alerts, and the cleanups that follow them."""

from ..promql import (
    PROCESS,
    STEP,
    counted,
    ever,
    increment,
    increment_from_zero,
    max_by,
    named,
    select,
    sum_by,
    total,
)
from .explanation import FASTEST_LEAK, LAST_LEAK
from .trainers import LEAKS

# Alerts.
_ALERT = f"alertname, severity, kind, resource, component, {PROCESS}"
_FIRING = select("ALERTS", alertstate="firing")
_PENDING = select("ALERTS", alertstate="pending")
# The rows of the tables, each once: the stack's own alerts are on its page.
_ROWS = named(max_by(_ALERT, _FIRING))
ALERTS_FIRING_COUNT = f"count({_ROWS}) or vector(0)"
ALERTS_PENDING_COUNT = f"count({named(max_by(_ALERT, _PENDING))}) or vector(0)"
ALERTS_FIRING_BY_TRAINER = f"count by ({PROCESS}) ({_ROWS})"
ALERT_STATES = max_by(
    f"alertname, component, {PROCESS}",
    f"2 * ({_FIRING} or {ever(_FIRING)}) or {_PENDING} or {ever(_PENDING)}",
)


def _since(**equal: str) -> str:
    firing = f"{select('ALERTS_FOR_STATE', **equal)} and ignoring (alertstate) {_FIRING}"
    return max_by(_ALERT, f"1000 * ({firing})")


# A leak of memory with the path that leaks most, and the line that fills it.
_OF_MEMORY = _since(kind="leak", resource="memory", component="trainer")
_LEAK = f"0 * ({FASTEST_LEAK} or on ({PROCESS}) {LAST_LEAK})"
ALERTS_SINCE = f"{_OF_MEMORY} + on ({PROCESS}) group_left (path, site) {_LEAK} or on ({_ALERT}) {_since()}"
_MAJOR = (LEAKS, select("ALERTS", alertstate="firing", severity="critical"))
# One mark a trainer, when the first of them begins: a mark for each hides the data. Rules may be
# evaluated less often than there is a step.
MAJOR_ALERT_STARTS = (
    f"{max_by(PROCESS, ' or '.join(ever(one) for one in _MAJOR))}"
    f" unless {max_by(PROCESS, ' or '.join(ever(one, '5m', '$__interval') for one in _MAJOR))}"
)
# By the names of that time: a trainer may have ended since, and another process have its address.
ALERTS_FIRED_FOR = f"{STEP.removesuffix('s')} * count_over_time(({_ROWS})[$__range:{STEP}])"

# Cleanups, as the trainers count them: the count of durations starts at 0, so the first one shows.
# The step matters: $__interval makes sure that no event falls between two steps, and none is counted twice.
_ACTION = f"{PROCESS}, action"
_CLEANUPS = select("trainer_cleanup_duration_seconds_count")
CLEANUP_EVENTS = f"{sum_by(_ACTION, increment(_CLEANUPS))} > 0"
CLEANUPS_IN_RANGE = total(counted(_CLEANUPS))
_FREED = select("trainer_cleanup_freed_bytes_total")
FREED = f"{sum_by(_ACTION, increment(_FREED))} > 0"
FREED_IN_RANGE = total(counted(_FREED))
REMOVED = f"{sum_by('resource', increment_from_zero(select('trainer_cleanup_removed_total')))} > 0"
