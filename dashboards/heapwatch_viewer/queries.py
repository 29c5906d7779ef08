"""Queries of panels and annotations to Prometheus."""

import asyncio
import re
from dataclasses import replace

from heapwatch_viewer.model import Annotation, Panel, PanelQuery
from heapwatch_viewer.panels.base import Mark
from heapwatch_viewer.prometheus import Prometheus, Series
from heapwatch_viewer.timerange import Window
from heapwatch_viewer.variables import Selections, interpolate

_LABEL = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")


def legend(template: str, labels: dict[str, str], expression: str) -> str:
    """The name of a series: Grafana's legend format, else its labels."""
    if template:
        return _LABEL.sub(lambda match: labels.get(match[1], ""), template)
    inside = ", ".join(f'{key}="{value}"' for key, value in labels.items() if key != "__name__")
    return labels.get("__name__", "") + (f"{{{inside}}}" if inside else "") or expression


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
    template = interpolate(target.legend, selections, window)
    return [
        replace(series, name=legend(template, series.labels, expression), ref_id=target.ref_id)
        for series in found
    ]


async def marks(
    annotations: list[Annotation], prometheus: Prometheus, selections: Selections, window: Window
) -> list[Mark]:
    """The marks of the annotations in `window`; neighbouring samples of a series make one mark."""
    found: list[Mark] = []
    for annotation in annotations:
        steps = window.with_step(annotation.step)
        expression = interpolate(annotation.expression, selections, steps)
        for series in await prometheus.range(expression, steps):
            parts = (legend(part, series.labels, "") for part in (annotation.title, annotation.text) if part)
            text = ": ".join(parts)
            for start, end in _moments(series, steps, annotation.value_is_time):
                found.append(Mark(start, end, text, annotation.color, annotation.panels))
    return found


def _moments(series: Series, window: Window, value_is_time: bool) -> list[tuple[float, float]]:
    """(start, end) of each mark; a series whose value is a time in milliseconds marks that time."""
    if value_is_time:
        moments = sorted({value / 1000 for _, value in series.points})
        return [(moment, moment) for moment in moments if window.start <= moment <= window.end]
    stretches: list[tuple[float, float]] = []
    for moment, value in series.points:
        if not value > 0:
            continue
        if stretches and moment - stretches[-1][1] <= window.step:
            stretches[-1] = (stretches[-1][0], moment)
        else:
            stretches.append((moment, moment))
    return stretches
