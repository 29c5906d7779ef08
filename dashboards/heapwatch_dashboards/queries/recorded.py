"""What the rules recorded: growth, limits, forecasts, and of whom a series may speak.

Sizes are in bytes, durations in seconds, growth per minute. A panel and an alert read the same series, so
that they never disagree.
"""

from ..promql import max_by, min_by, select

_START = select("job:trainer_process:start")


def growth(resource: str, *matchers: str) -> str:
    """Growth per minute of what is watched; not before ten minutes of a trainer's life."""
    return aged(10, slope(*matchers, f'resource="{resource}"'))


def slope(*matchers: str) -> str:
    """Growth per minute as the rules record it of memory and of what has a limit, for every watched level."""
    return f"60 * deriv({select('job:trainer_resource:level', *matchers)}[585s])"


def growth_per_cycle(resource: str) -> str:
    """Growth per epoch or generation of what is watched, as recorded."""
    return max_by(
        "job, instance, component, per", select("job:trainer_resource:growth_per_cycle", resource=resource)
    )


def limits(resource: str, component: str) -> str:
    """The limits in force for trainers that have this resource, one series a severity for each of them.

    `component` is a regular expression.
    """
    of_component = f'component=~"{component}"'
    return (
        f"{select('job:trainer_limit:effective', of_component, resource=resource)}"
        f" and on (job, instance) {select('job:trainer_resource:level', resource=resource)}"
    )


def growth_limit(resource: str, per: str = "minute") -> str:
    """The growth limit in force: the lowest among the chosen trainers. `per` is a regular expression."""
    limited = select("job:trainer_growth_limit:effective", f'per=~"{per}"', resource=resource)
    return min_by("per", limited)


def aged(minutes: int, expression: str) -> str:
    """Only of processes that are the same as so many minutes ago: before that it says nothing."""
    return f"(({expression}) and on (job, instance) ({_START} == {_START} offset {minutes}m))"


def current(expression: str) -> str:
    """Only of trainers that are there or missed: one that ended took its target back."""
    missed = select("ALERTS", 'component=~"process|progress"', kind="health", resource="trainer")
    return f"(({expression}) and on (job, instance) ({select('up')} or {missed}))"


def of_trainers(expression: str) -> str:
    """Only what trainers say: the stack's own services have the metrics of a process too."""
    return f"({expression} and on (job, instance) {select('trainer_info')})"


def of_known_trainers(expression: str) -> str:
    """Only what is said of trainers, also of those that are lost or do not answer."""
    known = f"{select('trainer_info')} or {select('job:trainer_known:info')}"
    return f"({expression} and on (job, instance) ({known}))"


# Forecasts: stat, table and chart show the same, no further than half an hour of growth can be trusted.
_SOON = 3 * 86400
TOO_EARLY, NOT_SOON = -1, -2
_TRUSTED = (
    "and on (job, instance)"
    f" ({select('job:trainer:watched_minutes')} >= {select('job:trainer_forecast:needed_minutes')})"
)


def forecast(expression: str, known: str, labels: str) -> str:
    """Seconds until the limit; TOO_EARLY for young processes, NOT_SOON beyond three days or without growth.

    `known` is a series of every trainer or device that could have a forecast.
    """
    exists = f"0 * {max_by(labels, known)}"
    return f"{soon(expression, labels)} or ({exists} {_TRUSTED}) + {NOT_SOON} or {exists} + {TOO_EARLY}"


def soon(expression: str, labels: str) -> str:
    """Seconds until the limit, only where there is a forecast: charts draw no words, and this is cheaper."""
    return f"{min_by(labels, f'{expression} {_TRUSTED}')} < {_SOON}"


def soonest(forecast: str) -> str:
    """The shortest of several forecasts; without one, whether it is too early for any."""
    return f"min(({forecast}) >= 0) or max({forecast})"
