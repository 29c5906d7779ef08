"""Trainers: their names, what grows, the parts of memory, and the process."""

from heapwatch.judge.verdict import WORDS

from ..colors import CODES, LEAK
from ..promql import (
    PROCESS,
    current,
    forecast,
    growth,
    in_life,
    max_by,
    min_by,
    of_trainers,
    or_zero,
    rate,
    select,
    soonest,
    sum_by,
)
from .explanation import GONE, LAST_LEAK, LEAKING, OF_LEAK, by_word

# The worst of what alerts, the trainer's own judge and scrapes say.
_KINDS = {"leak": "leak", "over a limit": "threshold|forecast", "growing": "growth"}


def _alerts(word: str) -> str:
    """The alerts that have a trainer called so."""
    return select("ALERTS", f'kind=~"{_KINDS[word]}"', alertstate="firing")


_LOST = f"{select('job:trainer:lost')} unless on ({PROCESS}) {select('up')} == 1"
_STALLED = select("ALERTS", kind="health", resource="trainer", component="progress", alertstate="firing")
_DOWN = f"{CODES['down or stalled']:g} + 0 * ({select('job:trainer:down')} or {_LOST} or {_STALLED})"
# The alert is pending as soon as the judge is late.
_LATE = f"{CODES['not judged']:g} * {select('ALERTS', alertname='TrainerJudgeLate')}"
_PRESENT = f"0 * last_over_time({select('trainer_info')}[5m])"
WORST = max_by(
    PROCESS,
    " or ".join(
        (
            _DOWN,
            *(f"{CODES[word]:g} * {_alerts(word)}" for word in _KINDS),
            f"{LEAK} + 0 * {select(LEAKING, OF_LEAK)}",
            _LATE,
            by_word(*WORDS),
            _PRESENT,
        )
    ),
)
# Trainers with a verdict, and the code of whatever in them neither leaks nor has an alert.
_IS_SAID = select("trainer_memory_verdict", 'verdict!="too early"')
JUDGED = f"last_over_time({_IS_SAID}[5m]) == 1"
OF_THE_REST = max_by(PROCESS, f"{_LATE} or {JUDGED} or {_PRESENT}")
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
RESIDENT = max_by(PROCESS, select("job:trainer_resource:total", resource="memory", component="all"))
# Of one that is lost or does not answer the last that is known.
KNOWN_RESIDENT = f"{RESIDENT} or {max_by(PROCESS, select('job:trainer_known:memory_bytes'))}"
MEMORY_LIMIT = max_by(PROCESS, select("trainer_memory_limit_bytes"))
USED_SHARE = f"{RESIDENT} / {MEMORY_LIMIT}"
_KNOWN = (select(f"job:trainer_known:{what}_bytes") for what in ("memory", "available"))
KNOWN_USED_SHARE = f"{USED_SHARE} or {' / '.join(max_by(PROCESS, one) for one in _KNOWN)} and {GONE}"
# Over ten minutes; of a younger process as it says itself, else over its life.
_SLOPE = sum_by(PROCESS, growth("memory"))
_SAID = max_by(PROCESS, f"{select('trainer_memory_growth_bytes_per_minute')} > 0")
_OF_LIFE = in_life("deriv", select("job:trainer_resource:level", resource="memory"), "585s")
MEMORY_GROWTH = f"({_SLOPE} or {_SAID} or {sum_by(PROCESS, f'60 * {_OF_LIFE}')})"
# As the judge says of what grows or leaks: memory that rises in steps may be level for ten minutes. Of one
# that is lost or does not answer that of the leak that it named last.
_JUDGED = f"({_SAID} and on ({PROCESS}) ({by_word('growing', 'leak')}))"
KNOWN_GROWTH = f"{current(f'{_JUDGED} or {MEMORY_GROWTH}')} or {sum_by(PROCESS, LAST_LEAK)}"


def said_time_left(*matchers: str) -> str:
    """The least time until memory is used up, as the trainer's judge says it, once growth is certain."""
    return min_by(PROCESS, select("trainer_memory_time_to_limit_seconds", *matchers, bound="least"))


# Of the memory that ends first: that of the process or of a GPU.
TIME_TO_LIMIT_SOON = said_time_left()
_LIMITED = f"{select('trainer_memory_limit_bytes')} or {select('machine_memory_limit_bytes')}"
TIME_TO_LIMIT = forecast(TIME_TO_LIMIT_SOON, _LIMITED, JUDGED)
SHORTEST_TIME_TO_LIMIT = soonest(TIME_TO_LIMIT)

# A cycle takes minutes: over the usual window the rate would be zero most of the time.
_STEPS = rate(select("trainer_progress_total", 'unit!~"epoch|generation"'))
_CYCLES = select("trainer_progress_total", 'unit=~"epoch|generation"')
PROGRESS = sum_by(f"{PROCESS}, unit", f"{_STEPS} or {in_life('increase', _CYCLES, '30m')} / 1800")
# Once, and not of a process that was entered later: Grafana would mark its start at the left edge.
_STARTED = select("process_start_time_seconds")
_NEW = f"({_STARTED} > time() - 3600 unless {_STARTED} == {_STARTED} offset $__interval)"
RESTARTS = f"1000 * {max_by(PROCESS, of_trainers(_NEW))}"
