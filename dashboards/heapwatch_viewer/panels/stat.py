"""Stat panels: one big number a series, coloured by its thresholds."""

from html import escape

from heapwatch_viewer.fields import Field, ink
from heapwatch_viewer.panels.base import Answers, Html, nothing, reduced
from heapwatch_viewer.prometheus import Series


def render(answers: Answers) -> Html:
    """Every series as a tile."""
    if answers.panel.options.get("graphMode", "none") != "none":
        raise ValueError("the built-in viewer draws no sparklines; Grafana draws them below the number")
    tiles = "".join(_tile(answers, series, field) for series, field in answers.fields())
    return Html(f'<div class="tiles">{tiles}</div>' if tiles else nothing(answers.panel))


def _tile(answers: Answers, series: Series, field: Field) -> str:
    options = answers.panel.options
    value = reduced(series.points)
    paint = field.paint(value) or "var(--text)"
    filled = options.get("colorMode") == "background"
    style = f"background:{paint}; color:#111" if filled else f"color:{ink(paint)}"
    named = options.get("textMode") == "value_and_name"
    name = f'<div class="name">{escape(field.name)}</div>' if named else ""
    shown = escape(field.text(value))
    return f'<div class="tile" style="{style}">{name}<div class="value">{shown}</div></div>'
