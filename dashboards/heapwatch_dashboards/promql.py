"""Small pieces of PromQL, so that a query reads as what it asks.

`$job` and `$instance` are the dashboards' variables: every selector made here is narrowed by them.
"""

import re

from .variables import NAME, SELECTED

TRAINER = "job, instance"


def select(metric: str, *matchers: str, **equal: str) -> str:
    """The metric's series of the chosen jobs and instances, narrowed by more matchers."""
    parts = [SELECTED, *matchers, *(f'{label}="{value}"' for label, value in equal.items())]
    return f"{metric}{{{', '.join(parts)}}}"


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


def in_range(function: str, series: str) -> str:
    """A function over the dashboard's whole time range."""
    return f"{function}({series}[$__range])"


def increment(series: str) -> str:
    """By how much counters rose in a step: whole events stay whole, which `increase` would smear."""
    return f"clamp_min({series} - last_over_time({series}[5m] offset $__interval), 0)"


def increment_from_zero(series: str) -> str:
    """The same for counters that appear with their first event."""
    return f"clamp_min({series} - (last_over_time({series}[5m] offset $__interval) or 0 * {series}), 0)"


def started(expression: str) -> str:
    """What is there and was not a step ago: one sample a start."""
    return f"({expression}) unless ({offset(expression)})"


def offset(expression: str) -> str:
    """The expression a step ago: every selector of it."""
    return re.sub(r"\}", "} offset $__interval", expression)


def events_or_zero(labels: str, counter: str) -> str:
    """What the counters of each value of the labels counted in a step; one 0 where none counted anything."""
    return f"{sum_by(labels, increment(counter))} > 0 or on () 0 * {total(counter)}"


def or_zero(expression: str, of: str) -> str:
    """The expression, or 0 where `of` has something to count: what is not known stays absent."""
    return f"{expression} or 0 * {of}"


def named(expression: str) -> str:
    """The expression with the label `trainer_name`, so that one line is one life of a process."""
    # The latest of an address: after a crash of Prometheus an earlier name may still be looked back at.
    latest = f"(topk by ({TRAINER}) (1, timestamp({select(NAME)})) > bool 0)"
    return f"({expression}) * on ({TRAINER}) group_left (trainer_name) {latest}"


def living(expression: str) -> str:
    """The same, only of processes that live at the end of the time range."""
    at_the_end = f"last_over_time({select(NAME)}[2m] @ end())"
    return f"({named(expression)}) and on ({TRAINER}, trainer_name) {at_the_end}"


def of_one(expression: str) -> str:
    """The expression while one trainer is chosen: the sum of several trainers has no limit."""
    return f"({expression}) and on () count({select(NAME)}) == 1"
