"""Stat panels: one big number a series, coloured by its thresholds."""

from html import escape

from heapwatch_viewer.fields import Field, ink
from heapwatch_viewer.panels.base import Answers, Html, anchor, nothing
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.reduce import reduced


def render(answers: Answers) -> Html:
    """Every series as a tile."""
    options = answers.panel.options
    if options.get("graphMode", "none") != "none":
        raise ValueError("the built-in viewer draws no sparklines; Grafana draws them below the number")
    calculation = (options.get("reduceOptions", {}).get("calcs") or ["lastNotNull"])[0]
    tiles = [
        _tile(answers, series, field, calculation, alone=len(answers.series) == 1)
        for series, field in answers.fields()
    ]
    if not tiles:
        return Html(nothing(answers.panel))
    return Html(f'<div class="tiles">{"".join(tiles)}</div>')


def _tile(answers: Answers, series: Series, field: Field, calculation: str, alone: bool) -> str:
    options = answers.panel.options
    value = reduced(series.points, calculation)
    paint = field.paint(value) or field.color or "var(--text)"
    filled = options.get("colorMode") == "background"
    style = f"background:{paint}; color:#111" if filled else f"color:{ink(paint)}"
    mode = options.get("textMode", "auto")
    named = mode in ("value_and_name", "name") or (mode == "auto" and not alone)
    shown = escape(field.name if mode == "name" else field.text(value))
    name = f'<div class="name">{escape(field.name)}</div>' if named and mode != "name" else ""
    labels = {f"__field.labels.{key}": label for key, label in series.labels.items()}
    value_html = anchor(answers, field.links, labels, shown)
    return f'<div class="tile" style="{style}">{name}<div class="value">{value_html}</div></div>'
