"""What a page asks Prometheus: the choices of its variables, its panels' queries and its annotations."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from heapwatch_viewer.model import Annotation, Panel, PanelQuery, Variable
from heapwatch_viewer.panels.base import Mark
from heapwatch_viewer.prometheus import Prometheus, Series
from heapwatch_viewer.timerange import Window

ALL = "$__all"
_LABEL = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")
_REFERENCE = re.compile(r"\$\{(\w+)\}|\$(\w+)")
_QUERY_RESULT = re.compile(r"^query_result\((?P<query>.+)\)$", re.DOTALL)
_LABEL_VALUES = re.compile(r"^label_values\(\s*(?:(?P<selector>.+),\s*)?(?P<label>\w+)\s*\)$", re.DOTALL)

Selections = dict[str, tuple[str, ...]]
"""The chosen values of each variable, or `(ALL,)`."""


async def choices(
    variable: Variable, chosen: Selections, prometheus: Prometheus, window: Window
) -> dict[str, str]:
    """The choices of `variable` in their order, given the variables before it: value to text.

    Raises QueryError.
    """
    query = variable.query.strip()
    asked = _QUERY_RESULT.match(query)
    if asked:
        found = await prometheus.instant(interpolate(asked["query"], chosen, window), window.end)
        pairs = [_captured(variable.regex, series.labels) for series in found]
        known: dict[str, str] = {}
        for value, text in pairs:  # as in Grafana, the first text of a value counts
            known.setdefault(value, text)
        return known
    match = _LABEL_VALUES.match(query)
    if not match:
        raise ValueError(
            f"variable {variable.name}: only label_values(…) and query_result(…) are known, not "
            f"{variable.query!r}"
        )
    selector = interpolate(match["selector"] or "", chosen, window)
    values = sorted(await prometheus.label_values(match["label"], selector, window))
    return dict(zip(values, values, strict=True))


def _captured(regex: str, labels: Mapping[str, str]) -> tuple[str, str]:
    """Value and text that the groups of the expression find in a series, written as Grafana writes it."""
    written = "{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}"
    pattern = re.sub(r"\(\?<(\w+)>", r"(?P<\1>", regex.removesuffix("g").strip("/"))
    groups = {
        name: text
        for match in re.finditer(pattern, written)
        for name, text in match.groupdict().items()
        if text is not None
    }
    value = groups.get("value") or groups.get("text") or written
    return value, groups.get("text") or value


def chosen_of(variable: Variable, wanted: Sequence[str], available: Iterable[str]) -> tuple[str, ...]:
    """The values of `variable` that are wanted, available or not; without one all, or the first available."""
    if variable.several:
        return (ALL,) if ALL in wanted or not wanted else tuple(wanted)
    return next(((value,) for value in (*wanted, *available) if value != ALL), (ALL,))


def interpolate(text: str, chosen: Selections, window: Window) -> str:
    """Put variables and Grafana's own (`$__rate_interval`, …) into a query.

    Several values become a regular expression, as Grafana does for Prometheus.
    """
    own = {
        "__interval": f"{window.step}s",
        "__rate_interval": f"{window.rate_interval}s",
        "__range": f"{int(window.end - window.start)}s",
    }

    def replace(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name in own:
            return own[name]
        return _as_regex(chosen[name]) if name in chosen else match[0]

    return _REFERENCE.sub(replace, text)


def _as_regex(values: tuple[str, ...]) -> str:
    """The values as they may stand between the quotes of a label matcher: none must end the matcher."""
    if values == (ALL,):
        return ".+"
    escaped = [
        re.escape(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for value in values
    ]
    return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"


def legend(template: str, labels: dict[str, str]) -> str:
    """The name of a series, by Grafana's legend format."""
    return _LABEL.sub(lambda match: labels.get(match[1], ""), template)


async def ask(panel: Panel, prometheus: Prometheus, selections: Selections, window: Window) -> list[Series]:
    """Every series of every query of `panel`, named. Raises QueryError."""
    answers = await asyncio.gather(
        *(_ask(target, prometheus, selections, window) for target in panel.targets)
    )
    return [series for answer in answers for series in answer]


async def _ask(
    target: PanelQuery, prometheus: Prometheus, selections: Selections, window: Window
) -> list[Series]:
    window = window.with_step(target.least_step)
    expression = interpolate(target.expression, selections, window)
    if target.instant:
        found = await prometheus.instant(expression, window.end)
    else:
        found = await prometheus.range(expression, window)
    return [
        replace(series, name=legend(target.legend, series.labels), ref_id=target.ref_id) for series in found
    ]


async def find_marks(
    annotations: Sequence[Annotation], prometheus: Prometheus, selections: Selections, window: Window
) -> list[Mark]:
    """The marks of the annotations in `window`: each sample above 0 is one, or the time that it gives."""
    found: list[Mark] = []
    for annotation in annotations:
        steps = window.with_step(annotation.step)
        expression = interpolate(annotation.expression, selections, steps)
        for series in await prometheus.range(expression, steps):
            text = ": ".join(legend(part, series.labels) for part in (annotation.title, annotation.text))
            events = [(at, value) for at, value in series.points if value > 0]
            moments = {value / 1000 if annotation.value_is_time else at for at, value in events}
            found += [
                Mark(moment, text, annotation.color, annotation.panels)
                for moment in sorted(moments)
                if window.start <= moment <= window.end
            ]
    return found
