"""Stat panels: one big number a series, coloured by its thresholds, with a sparkline."""

from html import escape

from heapwatch.viewer.fields import Field, ink
from heapwatch.viewer.panels.base import Answers, Html, anchor, nothing
from heapwatch.viewer.prometheus import Series
from heapwatch.viewer.reduce import reduced

SPARK_WIDTH, SPARK_HEIGHT = 100, 24


def render(answers: Answers) -> Html:
    """Every series as a tile."""
    options = answers.panel.options
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
    spark = (
        ""
        if options.get("graphMode", "none") == "none"
        else _sparkline(series, "#111111" if filled else paint)
    )
    name = f'<div class="name">{escape(field.name)}</div>' if named and mode != "name" else ""
    labels = {f"__field.labels.{key}": label for key, label in series.labels.items()}
    value_html = anchor(answers, field.links, labels, shown)
    return f'<div class="tile" style="{style}">{name}<div class="value">{value_html}</div>{spark}</div>'


def _sparkline(series: Series, paint: str) -> str:
    points = [(moment, value) for moment, value in series.points if value == value]
    if len(points) < 2:
        return ""
    low, high = min(value for _, value in points), max(value for _, value in points)
    first, last = points[0][0], points[-1][0]
    every = max(1, len(points) // SPARK_WIDTH)
    path = " ".join(
        f"{(moment - first) / (last - first) * SPARK_WIDTH:.1f},"
        f"{SPARK_HEIGHT - (value - low) / ((high - low) or 1) * (SPARK_HEIGHT - 2) - 1:.1f}"
        for moment, value in points[::every]
    )
    return (
        f'<svg class="spark" viewBox="0 0 {SPARK_WIDTH} {SPARK_HEIGHT}" preserveAspectRatio="none">'
        f'<polyline points="{path}" fill="none" stroke="{paint}" stroke-width="1.5" '
        'vector-effect="non-scaling-stroke"/></svg>'
    )
