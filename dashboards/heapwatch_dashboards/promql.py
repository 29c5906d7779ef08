"""Functions that build PromQL expressions.

`$job` and `$instance` are the dashboards' variables: every selector made here filters by them. Sizes are in
bytes, durations in seconds, growth per minute. A panel and an alert read the same recorded series, so that
they never disagree.
"""

from collections.abc import Callable, Mapping, Sequence

SELECTED = 'job=~"$job", instance=~"$instance"'
NAME = "job:trainer:name"
PROCESS = "job, instance"
LIFE = f"{PROCESS}, trainer_name"
# How often most rules are evaluated: a subquery with a longer step would miss what lasted for one evaluation.
STEP = "30s"


def select(metric: str, *matchers: str, **equal: str) -> str:
    """The metric's series of the chosen jobs and instances, narrowed by more matchers."""
    parts = [SELECTED, *matchers, *(f'{label}="{value}"' for label, value in equal.items())]
    return f"{metric}{{{', '.join(parts)}}}"


# When each name was last there in the dashboard's time range.
SEEN = f"max_over_time(timestamp({select(NAME)})[$__range:{STEP}])"


def total(expression: str) -> str:
    """One sum over everything."""
    return f"sum({expression})"


def sum_by(labels: str, expression: str) -> str:
    """A sum for each value of the labels."""
    return f"sum by ({labels}) ({expression})"


def max_by(labels: str, expression: str) -> str:
    """The largest for each value of the labels."""
    return f"max by ({labels}) ({expression})"


def min_by(labels: str, expression: str) -> str:
    """The smallest for each value of the labels."""
    return f"min by ({labels}) ({expression})"


def rate(series: str) -> str:
    """Per second, over a window that suits the step."""
    return f"rate({series}[$__rate_interval])"


def increment(series: str, step: str = "$__interval") -> str:
    """By how much counters rose in a step: whole events stay whole, which `increase` would smear."""
    return f"clamp_min({series} - last_over_time({series}[5m] offset {step}), 0)"


def counted(series: str) -> str:
    """By how much counters rose in the dashboard's time range: the sum of the steps of a chart."""
    return f"sum_over_time({increment(series, STEP)}[$__range:{STEP}])"


def increment_from_zero(series: str) -> str:
    """The same for counters that appear with their first event: not after a gap in the scrapes."""
    before = f"last_over_time({series}[5m] offset $__interval)"
    return (
        f"clamp_min({series} - ({before} or last_over_time({series}[1h] offset $__interval) <= {series}"
        f" or 0 * {series}), 0)"
    )


def ever(series: str, window: str = "$__interval", before: str = "") -> str:
    """Series that were there at any time in the window, also for less than a step; `before` is an offset."""
    return f"present_over_time({series}[{window}]{before and f' offset {before}'})"


def or_zero(expression: str, of: str) -> str:
    """The expression, or 0 if `of` has a sample; what is not known stays absent."""
    return f"{expression} or 0 * {of}"


def named(expression: str) -> str:
    """The expression with the label `trainer_name`, so each line is one process."""
    # The latest of an address: after a crash of Prometheus an earlier name may still be looked back at.
    latest = f"(topk by ({PROCESS}) (1, timestamp({select(NAME)})) > bool 0)"
    return f"({expression}) * on ({PROCESS}) group_left (trainer_name) {latest}"


def living(expression: str) -> str:
    """The same, only for processes that run at the end of the time range."""
    at_the_end = f"last_over_time({select(NAME)}[2m] @ end())"
    return f"({named(expression)}) and on ({LIFE}) {at_the_end}"


def in_life(function: str, series: str, window: str) -> str:
    """The function of the samples in the window, without those of another process at the same address.

    The result has the label `trainer_name`. Trainers that have ended have none.
    """
    return f"({function}(({named(series)})[{window}:{STEP}]) and on ({LIFE}) {select(NAME)})"


# What the rules recorded: growth, limits, and of whom a series may speak.
_START = select("job:trainer_process:start")
# Only processes that ran ten minutes ago: a slope must not lead from one process to the next at its address.
SAME_PROCESS = f"and on ({PROCESS}) ({_START} == {_START} offset 10m)"


def growth(*resources: str) -> str:
    """Growth per minute of every component of these resources, over ten minutes of a trainer's life."""
    slope = _of_each(resources, lambda series, seconds: f"60 * deriv({series}[{seconds}s])")
    return f"({slope} {SAME_PROCESS})"


def level(*resources: str) -> str:
    """Every component of these resources, in bytes or items; missed scrapes are bridged."""
    return _of_each(resources, lambda series, _: f"last_over_time({series}[5m])")


# The series of each resource, and the labels that name a component.
_OTHER_THAN_TORCH = 'part=~"jax_in_use|other_pools|workers|other_processes|unattributed"'
_WATCHED: Mapping[str, Sequence[tuple[str, tuple[str, ...]]]] = {
    "gpu_memory": (
        (select("trainer_gpu_memory_allocated_bytes"), ("device",)),
        (select("trainer_gpu_memory_part_bytes", _OTHER_THAN_TORCH), ("device", "part")),
    ),
    "bodies": ((select("trainer_bodies"), ("type",)),),
    "entities": ((select("trainer_entities"), ("type",)),),
    "events": ((select("trainer_event_list_items"), ("list",)),),
    "buffer": ((select("trainer_buffer_items"), ("buffer",)),),
    "objects": ((select("trainer_objects"), ("type",)),),
    "object_size": ((select("trainer_object_size_bytes"), ("object",)),),
}


def _of_each(resources: Sequence[str], function: Callable[[str, int], str]) -> str:
    """The function of each series, with the labels `resource` and `component`; seconds are its window."""
    parts = []
    for resource in resources:
        if resource == "memory":
            # Recorded every 30 s: of workers what they do not share.
            parts.append(function(select("job:trainer_resource:level", resource="memory"), 585))
        for series, labels in _WATCHED.get(resource, ()):
            names = ", ".join(f'"{label}"' for label in labels)
            component = f'label_join({function(series, 600)}, "component", " ", {names})'
            parts.append(f'label_replace({component}, "resource", "{resource}", "", "")')
    return f"({' or '.join(parts)})"


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
    """The growth limit in force, the lowest of the components. `per` is a regular expression."""
    limited = select("job:trainer_growth_limit:effective", f'per=~"{per}"', resource=resource)
    return min_by("per", limited)


def current(expression: str) -> str:
    """Only trainers that exist or are missing; one that ended normally has removed its target."""
    missed = select("ALERTS", 'component=~"process|progress"', kind="health", resource="trainer")
    return f"(({expression}) and on (job, instance) ({select('up')} or {missed}))"


def of_trainers(expression: str) -> str:
    """Only series of trainers, because the stack's services also have process metrics."""
    return f"({expression} and on (job, instance) {select('trainer_info')})"


# Why there is no forecast.
TOO_EARLY, NOT_SOON = -1, -2


def forecast(said: str, known: str, judged: str) -> str:
    """Seconds until the limit; TOO_EARLY before the first verdict, NOT_SOON beyond a week or without growth.

    `known` is a series of every trainer that could have a forecast, `judged` one of those with a verdict.
    """
    exists = f"0 * {max_by(PROCESS, known)}"
    return f"{said} or ({exists} and on ({PROCESS}) {judged}) + {NOT_SOON} or {exists} + {TOO_EARLY}"


def soonest(forecast: str) -> str:
    """The shortest of several forecasts; without one, whether it is too early for any."""
    return f"min(({forecast}) >= 0) or max({forecast})"
